#include "transforms/sharding/pattern_pins.h"

#include <algorithm>

#include "ir/batch.h"
#include "ir/op_info.h"
#include "ir/op_kind.h"
#include "ir/sharding_rule.h"
#include "transforms/training/step_phases.h"

namespace orrery::transforms {
namespace pattern_pins_cc {
namespace {

using ir::Function;
using ir::OpId;
using ir::ValueId;

bool Has(const ir::ShardingRule::Factors& row, int8_t factor) {
  return std::ranges::find(row, factor) != row.end();
}

// The dimension of operand `i` that every operand and result of a product has: that of the experts,
// where the operand is their weights. What a head has one number of is no weight. -1: there is
// none.
int ExpertDim(const Function& function, OpId op, size_t i) {
  const ir::OpInfo& info = function.info(op);
  if (!info.matrix_product || info.sharding == nullptr) return -1;
  if (function.type(function.operands(op)[i]).dims.size() < 2) return -1;
  const ir::ShardingRule rule = ir::RuleOf(function, op);
  for (size_t d = 0; d < rule.operands[i].size(); ++d) {
    const int8_t factor = rule.operands[i][d];
    const auto has = [&](const auto& row) { return Has(row, factor); };
    if (factor == ir::kNoFactor || !std::ranges::all_of(rule.operands, has)) continue;
    if (std::ranges::all_of(rule.results, has)) return static_cast<int>(d);
  }
  return -1;
}

// The dimension of the sequence, in three: beside that of the batch. Slots of experts are none.
int SequenceDim(const Function& function, ValueId value, const IdTable<ValueId, int8_t>& batch) {
  if (function.type(value).dims.size() != 3) return -1;
  const OpId op = function.producer(value);
  const bool experts = op.valid() && function.info(op).matrix_product &&
                       function.operands(op).size() > 1 && ExpertDim(function, op, 1) >= 0;
  if (experts) return -1;
  return batch[value] == 1 ? 0 : 1;
}

}  // namespace
}  // namespace pattern_pins_cc

IdTable<ir::ValueId, char> PinExperts(const AxisProblem& problem, PinnedLayouts& pins) {
  const ir::Function& function = problem.function;
  IdTable<ir::ValueId, char> rest(function.value_limit(), 0);
  IdTable<ir::ValueId, char> parameter(function.value_limit(), 0);
  for (const ir::Input& input : function.inputs()) {
    parameter[input.value] = ir::IsWeight(input.role) ? 1 : 0;
  }
  for (const ir::OpId op : function.order()) {
    const auto operands = function.operands(op);
    for (size_t i = 0; i < operands.size(); ++i) {
      const ir::ValueId weight = WeightUnder(function, operands[i]);
      if (parameter[weight] == 0 || pins[weight] != kNoLayout) continue;
      const int dim = pattern_pins_cc::ExpertDim(function, op, i);
      if (dim < 0) continue;
      if (CanSplit(function.type(weight), static_cast<size_t>(dim), problem.axis, problem.mesh)) {
        pins[weight] = static_cast<AxisLayout>(dim);
      } else {
        rest[weight] = 1;
      }
    }
  }
  return rest;
}

void PinWhole(const AxisProblem& problem, const IdTable<ir::ValueId, char>& others,
              PinnedLayouts& pins) {
  for (const ir::Input& input : problem.function.inputs()) {
    AxisLayout& pin = pins[input.value];
    const bool other = !others.empty() && others[input.value] != 0;
    const bool parameter = ir::IsWeight(input.role);
    if (parameter && !other && pin == kNoLayout) pin = kWholeLayout;
  }
}

void PinWeights(const AxisProblem& problem, const TensorSplits& splits, PinnedLayouts& pins) {
  for (const ir::Input& input : problem.function.inputs()) {
    AxisLayout& pin = pins[input.value];
    const bool parameter = ir::IsWeight(input.role);
    if (!parameter || pin != kNoLayout || splits.open[input.value] != 0) continue;
    const int8_t dim = splits.dims[input.value];
    const bool fits = dim < 0 || CanSplit(problem.function.type(input.value),
                                          static_cast<size_t>(dim), problem.axis, problem.mesh);
    if (fits) pin = dim;
  }
}

bool PinSequence(const AxisProblem& problem, const TensorSplits& splits, PinnedLayouts& pins) {
  const ir::Function& function = problem.function;
  const IdTable<ir::OpId, StepPhase> phase = FindPhases(function);
  const IdTable<ir::ValueId, int8_t> batch = ir::BatchDims(function);
  const auto pin = [&](ir::ValueId value) {
    const int dim = pattern_pins_cc::SequenceDim(function, value, batch);
    if (dim < 0 || pins[value] != kNoLayout) return false;
    if (!CanSplit(function.type(value), static_cast<size_t>(dim), problem.axis, problem.mesh)) {
      return false;
    }
    pins[value] = static_cast<AxisLayout>(dim);
    return true;
  };
  bool any = false;
  for (const ir::OpId op : function.order()) {
    for (int32_t i = 0; i < function.result_count(op); ++i) {
      const ir::ValueId value = function.result(op, i);
      const bool summed = phase[op] == StepPhase::kForward && splits.partial[value] != 0;
      if (summed && pin(value)) any = true;
    }
  }
  // The residual stream, to which those sums are added, is split where it begins, too.
  IdTable<ir::ValueId, char> split(function.value_limit(), 0);
  for (const ir::OpId op : function.order()) {
    if (function.result_count(op) == 0) continue;
    const auto operands = function.operands(op);
    const ir::ValueId result = function.result(op);
    const bool adds = function.kind(op) == ir::OpKind::kAdd && operands.size() == 2;
    const bool any_split =
        std::ranges::any_of(operands, [&](ir::ValueId operand) { return split[operand] != 0; });
    const int dim = pattern_pins_cc::SequenceDim(function, result, batch);
    const bool pinned = dim >= 0 && pins[result] == dim;
    const bool passes = any_split && function.kind(op) == ir::OpKind::kDropout;
    split[result] = pinned || passes ? 1 : 0;
    for (size_t i = 0; adds && any_split && i < 2; ++i) {
      const bool stream = split[operands[i]] == 0 && function.producer(operands[i]).valid() &&
                          function.type(operands[i]).dims == function.type(result).dims;
      if (stream) pin(operands[i]);
    }
  }
  return any;
}

}  // namespace orrery::transforms
