#include "transforms/stages/shared_parameters.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "ir/op_info.h"
#include "ir/op_kind.h"
#include "ir/optimizer_operands.h"

namespace orrery::transforms {
namespace shared_parameters_cc {
namespace {

using ir::Function;
using ir::OpClass;
using ir::OpId;
using ir::ValueId;

class ParameterSharing {
 public:
  ParameterSharing(const Function& function, const std::vector<int32_t>& ranks, StagePlan& plan)
      : function_(function), ranks_(ranks), plan_(plan), uses_(ir::CountUses(function)) {}

  void Run() {
    FindCopies();
    if (plan_.copies.empty()) return;
    for (const OpId op : function_.order()) {
      if (function_.info(op).op_class != OpClass::kOptimizer) continue;
      const ir::OptimizerOperands operands(function_, op);
      for (size_t i = 0; i < operands.count(); ++i) {
        Join(operands.parameters()[i], operands.gradients()[i], true);
      }
    }
    for (const ir::Output& output : function_.outputs()) {
      if (output.role == ir::OutputRole::kGradient) Join(output.of, output.value, false);
    }
  }

 private:
  using Stages = absl::InlinedVector<int32_t, 2>;

  void FindCopies() {
    IdTable<ValueId, Stages> readers(function_.value_limit());
    const auto add = [&](ValueId value, int32_t stage) {
      Stages& stages = readers[value];
      const auto at = std::lower_bound(stages.begin(), stages.end(), stage);
      if (at == stages.end() || *at != stage) stages.insert(at, stage);
    };
    const auto& order = function_.order();
    for (auto op = order.rbegin(); op != order.rend(); ++op) {
      if (plan_.phase[*op] == StepPhase::kUpdate) continue;
      for (const ValueId operand : function_.operands(*op)) {
        if (plan_.repeated[*op] == 0) add(operand, plan_.stage[*op]);
        for (int32_t i = 0; plan_.repeated[*op] != 0 && i < function_.result_count(*op); ++i) {
          for (const int32_t stage : readers[function_.result(*op, i)]) add(operand, stage);
        }
      }
    }
    for (const ir::Input& input : function_.inputs()) {
      const Stages& stages = readers[input.value];
      if (!ir::IsWeight(input.role) || stages.size() < 2) continue;
      plan_.home[input.value] = stages.back();
      plan_.copies[input.value] = LastOfEachRank(stages);
    }
  }

  std::vector<int32_t> LastOfEachRank(const Stages& stages) const {
    if (ranks_.empty()) return {stages.begin(), stages.end()};
    std::vector<int32_t> last;
    for (size_t i = 0; i < stages.size(); ++i) {
      const auto on_same_rank = [&](int32_t stage) {
        return ranks_[static_cast<size_t>(stage)] == ranks_[static_cast<size_t>(stages[i])];
      };
      if (std::none_of(stages.begin() + static_cast<int64_t>(i) + 1, stages.end(), on_same_rank)) {
        last.push_back(stages[i]);
      }
    }
    return last;
  }

  // Where the gradient of a shared parameter is put together, that is done in the update.
  void Join(ValueId parameter, ValueId gradient, bool updated) {
    const auto copies = plan_.copies.find(parameter);
    if (copies == plan_.copies.end()) return;
    home_ = copies->second.back();
    runs_on_ = {home_};
    if (updated && copies->second.size() == 2) runs_on_ = copies->second;
    JoinParts(gradient);
  }

  // Moves what joins parts of several stages, and what comes after it. Returns the stage whose part
  // the value is, or -1 when it is of several.
  int32_t JoinParts(ValueId value) {
    constexpr int32_t kSeveral = -1;
    const OpId op = function_.producer(value);
    if (!op.valid()) return home_;
    if (plan_.runs_on.contains(op)) return kSeveral;
    if (!IsJoin(op)) return plan_.stage[op];
    int32_t stage = plan_.stage[op];
    bool several = plan_.phase[op] == StepPhase::kUpdate;
    const auto operands = function_.operands(op);
    for (size_t i = 0; i < operands.size(); ++i) {
      const int32_t part = JoinParts(operands[i]);
      several = several || part == kSeveral || (i > 0 && part != stage);
      stage = part;
    }
    if (!several) return stage;
    plan_.phase[op] = StepPhase::kUpdate;
    plan_.stage[op] = home_;
    plan_.runs_on[op] = runs_on_;
    return kSeveral;
  }

  // Whether the op does nothing but sum or move gradients of this parameter.
  bool IsJoin(OpId op) const {
    if (plan_.phase[op] == StepPhase::kForward || function_.result_count(op) != 1) return false;
    for (const ValueId operand : function_.operands(op)) {
      const OpId producer = function_.producer(operand);
      const bool gradient = producer.valid() && plan_.phase[producer] != StepPhase::kForward;
      if (!gradient || uses_[operand] != 1) return false;
    }
    const ir::OpInfo& info = function_.info(op);
    const size_t operands = function_.operands(op).size();
    return info.op_class == OpClass::kCollective || (info.linear && operands == 1) ||
           (function_.kind(op) == ir::OpKind::kAdd && operands == 2);
  }

  const Function& function_;
  const std::vector<int32_t>& ranks_;
  StagePlan& plan_;
  const IdTable<ValueId, int32_t> uses_;
  int32_t home_ = 0;
  std::vector<int32_t> runs_on_;  // what puts the gradient together
};

}  // namespace
}  // namespace shared_parameters_cc

void ShareParameters(const ir::Function& function, const std::vector<int32_t>& ranks,
                     StagePlan& plan) {
  shared_parameters_cc::ParameterSharing(function, ranks, plan).Run();
}

std::vector<std::vector<size_t>> UpdatesOf(const StagePlan& plan, int32_t stage,
                                           std::span<const ir::ValueId> parameters) {
  std::vector<size_t> at_once, late;
  for (size_t i = 0; i < parameters.size(); ++i) {
    if (!plan.Holds(stage, parameters[i])) continue;
    const auto copies = plan.copies.find(parameters[i]);
    const bool waits = plan.late_updates && copies != plan.copies.end() &&
                       copies->second.size() > 1 && copies->second.back() == stage;
    (waits ? late : at_once).push_back(i);
  }
  std::vector<std::vector<size_t>> updates;
  for (std::vector<size_t>* update : {&at_once, &late}) {
    if (!update->empty()) updates.push_back(std::move(*update));
  }
  return updates;
}

}  // namespace orrery::transforms
