#include "transforms/training/step_phases.h"

#include <algorithm>

#include "ir/op_info.h"
#include "ir/op_kind.h"
#include "transforms/redistribution/emit.h"
#include "transforms/training/fp8_products.h"

namespace orrery::transforms {
namespace step_phases_cc {
namespace {

using ir::Function;
using ir::OpId;
using ir::ValueId;

// Whether the op moves a value and computes nothing.
bool IsRedistribution(const Function& function, OpId op) {
  using redistribution::MoveKind;
  const auto step = redistribution::StepOf(function.kind(op));
  return step.has_value() && *step != MoveKind::kAllReduce && *step != MoveKind::kReduceScatter;
}

bool IsUpdateOutput(ir::OutputRole role) {
  return role == ir::OutputRole::kGradient || role == ir::OutputRole::kUpdated;
}

// A value that is only put together, cut or copied for the backward phase is so there, and not kept
// twice.
void MoveRedistributions(const Function& function, IdTable<OpId, StepPhase>& phase) {
  IdTable<ValueId, char> used_forward(function.value_limit(), 0);
  for (const ir::Output& output : function.outputs()) used_forward[output.value] = 1;
  const auto& order = function.order();
  for (auto op = order.rbegin(); op != order.rend(); ++op) {
    const bool later = IsRedistribution(function, *op) || MakesCopy(function, *op);
    if (later && used_forward[function.result(*op)] == 0) phase[*op] = StepPhase::kBackward;
    if (phase[*op] != StepPhase::kForward) continue;
    for (const ValueId operand : function.operands(*op)) used_forward[operand] = 1;
  }
}

}  // namespace
}  // namespace step_phases_cc

bool HasBackward(const ir::Function& function) {
  return std::ranges::any_of(function.order(),
                             [&](ir::OpId op) { return function.info(op).seeds_backward; });
}

IdTable<ir::OpId, StepPhase> FindPhases(const ir::Function& function) {
  IdTable<ir::OpId, StepPhase> phase(function.op_limit(), StepPhase::kForward);
  IdTable<ir::ValueId, StepPhase> after(function.value_limit(), StepPhase::kForward);
  for (const ir::OpId op : function.order()) {
    for (const ir::ValueId operand : function.operands(op)) {
      phase[op] = std::max(phase[op], after[operand]);
    }
    StepPhase marks = phase[op];
    if (function.info(op).seeds_backward) marks = std::max(marks, StepPhase::kBackward);
    if (function.info(op).op_class == ir::OpClass::kOptimizer) marks = StepPhase::kUpdate;
    for (int32_t i = 0; i < function.result_count(op); ++i) after[function.result(op, i)] = marks;
  }
  step_phases_cc::MoveRedistributions(function, phase);
  // A value's uses all belong to the update until one is seen that does not.
  IdTable<ir::ValueId, char> used(function.value_limit(), 0),
      used_earlier(function.value_limit(), 0);
  for (const ir::Output& output : function.outputs()) {
    (step_phases_cc::IsUpdateOutput(output.role) ? used : used_earlier)[output.value] = 1;
  }
  const auto& order = function.order();
  for (auto op = order.rbegin(); op != order.rend(); ++op) {
    const ir::OpClass op_class = function.info(*op).op_class;
    bool update = op_class == ir::OpClass::kOptimizer || phase[*op] == StepPhase::kUpdate;
    if (op_class == ir::OpClass::kCollective && !update) {
      update = used[function.result(*op)] != 0 && used_earlier[function.result(*op)] == 0;
    }
    if (update) phase[*op] = StepPhase::kUpdate;
    for (const ir::ValueId operand : function.operands(*op))
      (update ? used : used_earlier)[operand] = 1;
  }
  return phase;
}

void SplitBackwardPhase(const ir::Function& function, const IdTable<ir::OpId, int32_t>& stage,
                        IdTable<ir::OpId, StepPhase>& phase) {
  constexpr int32_t kNobody = -1, kOthers = -2;  // who, by stage, wants the value early or for W
  constexpr int32_t kOneLayer = 2;               // gradients: of a weight and its bias
  IdTable<ir::ValueId, int32_t> wanted(function.value_limit(), kNobody);
  IdTable<ir::ValueId, int32_t> leads_to(function.value_limit(),
                                         0);  // so many gradients of weights
  for (const ir::Output& output : function.outputs()) {
    if (!step_phases_cc::IsUpdateOutput(output.role)) wanted[output.value] = kOthers;
    if (output.role == ir::OutputRole::kGradient) leads_to[output.value] = 1;
  }
  const auto want = [&](ir::ValueId value, int32_t by) {
    wanted[value] = wanted[value] == kNobody || wanted[value] == by ? by : kOthers;
  };
  const auto& order = function.order();
  for (auto op = order.rbegin(); op != order.rend(); ++op) {
    if (phase[*op] == StepPhase::kForward) continue;
    int32_t gradients = 0;
    for (int32_t i = 0; i < function.result_count(*op); ++i) {
      gradients += leads_to[function.result(*op, i)];
    }
    if (phase[*op] == StepPhase::kUpdate) gradients = 1;
    bool weights = phase[*op] == StepPhase::kBackward && gradients <= kOneLayer &&
                   !ReshardsForward(function, phase, *op);
    for (int32_t i = 0; i < function.result_count(*op); ++i) {
      const int32_t by = wanted[function.result(*op, i)];
      weights = weights && (by == kNobody || by == stage[*op]);
    }
    for (const ir::ValueId operand : function.operands(*op)) {
      leads_to[operand] = std::min(leads_to[operand] + gradients, kOneLayer + 1);
    }
    if (phase[*op] != StepPhase::kBackward) continue;
    if (weights) phase[*op] = StepPhase::kWeights;
    for (const ir::ValueId operand : function.operands(*op)) {
      want(operand, weights ? stage[*op] : kOthers);
    }
  }
}

IdTable<ir::ValueId, char> FindFixedValues(const ir::Function& function) {
  IdTable<ir::ValueId, char> fixed(function.value_limit(), 0);
  for (const ir::Input& input : function.inputs()) {
    fixed[input.value] = input.role == ir::InputRole::kBuffer ? 1 : 0;
  }
  for (const ir::OpId op : function.order()) {
    const auto operands = function.operands(op);
    const bool none = operands.empty() && function.kind(op) != ir::OpKind::kConstant;
    const bool moves = function.info(op).op_class == ir::OpClass::kCollective &&
                       function.kind(op) != ir::OpKind::kAllSlice;
    if (none || moves) continue;
    const bool all = std::all_of(operands.begin(), operands.end(),
                                 [&](ir::ValueId operand) { return fixed[operand] != 0; });
    for (int32_t i = 0; i < function.result_count(op); ++i) {
      fixed[function.result(op, i)] = all ? 1 : 0;
    }
  }
  for (const ir::Output& output : function.outputs()) fixed[output.value] = 0;
  return fixed;
}

bool ReshardsForward(const ir::Function& function, const IdTable<ir::OpId, StepPhase>& phase,
                     ir::OpId op) {
  while (step_phases_cc::IsRedistribution(function, op) && phase[op] == StepPhase::kBackward) {
    const ir::OpId producer = function.producer(function.operands(op)[0]);
    if (!producer.valid()) return true;
    if (phase[producer] == StepPhase::kForward) return !function.info(producer).seeds_backward;
    op = producer;
  }
  return false;
}

}  // namespace orrery::transforms
