#include "transforms/stages/stage_costs.h"

#include "ir/last_of_kind.h"
#include "ir/op_info.h"
#include "ir/optimizer_operands.h"
#include "transforms/sharding/op_strategies.h"
#include "transforms/stages/stage_cuts.h"

namespace orrery::transforms {
namespace stage_costs_cc {
namespace {

using ir::Function;
using ir::OpId;
using ir::ValueId;

// So many parameters: those of CostsOf.
class Coster {
 public:
  Coster(const Function& function, const ForwardChain& chain, std::span<const StageUnit> units,
         const StagePlan& plan, const ShardingPrices* prices, const StateShares& state)
      : function_(function),
        chain_(chain),
        units_(units),
        plan_(plan),
        prices_(prices),
        state_(state),
        kept_(function.value_limit(), 0) {
    for (std::vector<double>* column :
         {&costs_.forward, &costs_.input_gradient, &costs_.weight_gradient, &costs_.update,
          &costs_.state_bytes, &costs_.weight_bytes, &costs_.kept_bytes}) {
      column->resize(units.size());
    }
  }

  UnitCosts Run() {
    for (const OpId op : function_.order()) {
      if (function_.info(op).op_class == ir::OpClass::kOptimizer) {
        Optimizer(op, Seconds(op));
      } else {
        At(SecondsOfPhase(plan_.phase[op]), plan_.stage[op]) += Seconds(op);
      }
    }
    Freeze();
    Keep();
    const std::vector<double> crossing = CrossingBytes(function_, chain_.ops, chain_.from_data);
    for (const StageUnit& unit : units_) costs_.boundary_bytes.push_back(crossing[unit.begin]);
    costs_.boundary_bytes.front() = 0;
    return std::move(costs_);
  }

 private:
  std::vector<double>& SecondsOfPhase(StepPhase phase) {
    switch (phase) {
      case StepPhase::kForward:
        return costs_.forward;
      case StepPhase::kBackward:
        return costs_.input_gradient;
      case StepPhase::kWeights:
        return costs_.weight_gradient;
      case StepPhase::kUpdate:
        break;
    }
    return costs_.update;
  }

  static double& At(std::vector<double>& column, int32_t unit) {
    return column[static_cast<size_t>(unit)];
  }

  double Seconds(OpId op) {
    if (prices_ == nullptr) return FlopsOf(function_, op);
    if (const double* const known = known_.Find(function_, op); known != nullptr) return *known;
    std::vector<const ir::TensorType*> operands, results;
    for (const ValueId operand : function_.operands(op)) {
      operands.push_back(&function_.type(operand));
    }
    for (int32_t i = 0; i < function_.result_count(op); ++i) {
      results.push_back(&function_.type(function_.result(op, i)));
    }
    return known_.Put(function_, op,
                      SecondsOf({.kind = function_.kind(op),
                                 .attributes = function_.attributes(op),
                                 .operands = operands,
                                 .results = results},
                                function_.mesh(), *prices_));
  }

  double SizeOf(ValueId value) const {
    return static_cast<double>(
        ir::SizeOf(ir::LocalType(function_.type(value), function_.mesh())).count());
  }

  // Weights that are held, and nothing more.
  void Freeze() {
    for (const ir::Input& input : function_.inputs()) {
      if (input.role != ir::InputRole::kFrozen) continue;
      const auto add = [&](int32_t unit) {
        if (unit >= 0) At(costs_.state_bytes, unit) += SizeOf(input.value) * state_.weights;
      };
      const auto copies = plan_.copies.find(input.value);
      if (copies == plan_.copies.end()) {
        add(plan_.home[input.value]);
      } else {
        for (const int32_t unit : copies->second) add(unit);
      }
    }
  }

  // Each parameter with what belongs to it, and its share of the time.
  void Optimizer(OpId op, double seconds) {
    const ir::OptimizerOperands operands(function_, op);
    double all = 0;
    for (const ValueId parameter : operands.parameters()) all += SizeOf(parameter);
    for (size_t i = 0; i < operands.count(); ++i) {
      const ValueId parameter = operands.parameters()[i];
      const double weight = SizeOf(parameter);
      double state = weight * state_.weights + SizeOf(operands.gradients()[i]) * state_.gradients;
      for (size_t group = 1; group + 1 < operands.groups(); ++group) {
        state += SizeOf(operands.all()[operands.Position(group, i)]) * state_.optimizer;
      }
      const auto add = [&](int32_t unit) {
        if (unit < 0) return;
        At(costs_.update, unit) += seconds * weight / all;
        At(costs_.weight_bytes, unit) += weight * state_.weights;
        At(costs_.state_bytes, unit) += state;
      };
      const auto copies = plan_.copies.find(parameter);
      if (copies == plan_.copies.end()) {
        add(plan_.home[parameter]);
      } else {
        for (const int32_t unit : copies->second) add(unit);
      }
    }
  }

  // What backward reads of forward, where views are read that which they look at.
  void Keep() {
    const auto& order = function_.order();
    for (auto op = order.rbegin(); op != order.rend(); ++op) {
      bool reads =
          plan_.phase[*op] != StepPhase::kForward && plan_.phase[*op] != StepPhase::kUpdate;
      const bool view = function_.info(*op).strided_view;
      for (int32_t i = 0; view && !reads && i < function_.result_count(*op); ++i) {
        char& kept = kept_[function_.result(*op, i)];
        reads = kept != 0;
        kept = 0;
      }
      if (!reads) continue;
      for (const ValueId operand : function_.operands(*op)) {
        const OpId producer = function_.producer(operand);
        if (producer.valid() && plan_.phase[producer] == StepPhase::kForward) kept_[operand] = 1;
      }
    }
    for (const OpId op : chain_.ops) {
      for (int32_t i = 0; i < function_.result_count(op); ++i) {
        const ValueId value = function_.result(op, i);
        if (kept_[value] != 0) At(costs_.kept_bytes, plan_.stage[op]) += SizeOf(value);
      }
    }
  }

  const Function& function_;
  const ForwardChain& chain_;
  const std::span<const StageUnit> units_;
  const StagePlan& plan_;
  const ShardingPrices* const prices_;
  const StateShares& state_;
  ir::LastOfKind<double> known_;
  IdTable<ValueId, char> kept_;
  UnitCosts costs_;
};

}  // namespace
}  // namespace stage_costs_cc

absl::StatusOr<StagePlan> PlaceUnits(const ir::Function& function,
                                     const IdTable<ir::OpId, StepPhase>& phase,
                                     const ForwardChain& chain, bool split_backward,
                                     std::vector<StageUnit>& units) {
  for (;;) {
    std::vector<size_t> positions;
    for (size_t i = 1; i < units.size(); ++i) positions.push_back(units[i].begin);
    StageConflict conflict;
    const StageOptions options{.stages = static_cast<int64_t>(units.size()),
                               .split_backward = split_backward};
    absl::StatusOr<StagePlan> plan = AssignStages(
        function, options, {.phase = phase, .chain = chain, .positions = positions}, &conflict);
    if (plan.ok() || conflict.last <= conflict.first) return plan;
    for (int32_t unit = conflict.first + 1; unit <= conflict.last; ++unit) {
      units[static_cast<size_t>(conflict.first)].layer |= units[static_cast<size_t>(unit)].layer;
    }
    units.erase(units.begin() + conflict.first + 1, units.begin() + conflict.last + 1);
  }
}

std::vector<double> UnitCosts::Seconds(int64_t microbatches) const {
  std::vector<double> seconds = forward;
  for (size_t i = 0; i < seconds.size(); ++i) {
    seconds[i] +=
        input_gradient[i] + weight_gradient[i] + update[i] / static_cast<double>(microbatches);
  }
  return seconds;
}

UnitCosts CostsOf(const ir::Function& function, const ForwardChain& chain,
                  std::span<const StageUnit> units, const StagePlan& plan,
                  const ShardingPrices* prices, const StateShares& kept) {
  return stage_costs_cc::Coster(function, chain, units, plan, prices, kept).Run();
}

}  // namespace orrery::transforms
