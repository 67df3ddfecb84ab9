#include "transforms/memory/zero_plan.h"

#include <algorithm>
#include <map>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "ir/op_info.h"
#include "ir/optimizer_operands.h"
#include "transforms/memory/units.h"
#include "transforms/memory/zero_part.h"
#include "transforms/training/fp8_mixed.h"

namespace orrery::transforms {
namespace zero_plan_cc {
namespace {

using ir::AxisIndex;
using ir::AxisList;
using ir::Function;
using ir::OpId;
using ir::TensorType;
using ir::ValueId;

// The axes along which ranks do the same to other samples or positions.
constexpr absl::string_view kDataAxes[] = {"dp", "ep", "cp"};

class Planner {
 public:
  Planner(const ZeroOptions& options, const PipelineStage& stage)
      : options_(options), stage_(stage), mesh_(stage.update.function.mesh()) {
    const bool grouped = options.group > 0 && mesh_.Find(kZeroAxis).has_value();
    for (AxisIndex axis = 0; axis < static_cast<AxisIndex>(mesh_.axes().size()); ++axis) {
      const std::string& name = mesh_.axes()[axis].name;
      const bool data =
          grouped ? name == kZeroAxis : std::ranges::find(kDataAxes, name) != std::end(kDataAxes);
      if (data && mesh_.size(axis) > 1) axes_.push_back(axis);
    }
  }

  ZeroPlan Run() {
    plan_.gathers = options_.stage >= 3;
    if (axes_.empty()) return std::move(plan_);
    for (const ParameterUpdate& update : UpdatesOf(stage_.update.function)) PlanUpdate(update);
    for (const StageFunction* part : stage_.parts()) {
      for (const ir::Input& input : part->function.inputs()) {
        if (plan_.gathers && ir::IsWeight(input.role)) {
          PlanParameter(*part, input.value);
        }
      }
    }
    if (options_.stage >= 2) SetUnits();
    return std::move(plan_);
  }

 private:
  // The shard of a parameter; null when it stays whole.
  const Shard* PlanParameter(const StageFunction& part, ValueId value) {
    const ValueId origin = OriginOf(part, value);
    const Function& function = part.function;
    if (function.producer(value).valid() || !origin.valid()) return nullptr;
    if (const Shard* known = ZeroPlan::Find(plan_.parameters, origin)) return known;
    const std::optional<Shard> shard = Choose(function.type(value));
    return shard.has_value() ? &(plan_.parameters[origin] = *shard) : nullptr;
  }

  // Over as many ranks as possible.
  std::optional<Shard> Choose(const TensorType& type) const {
    std::vector<AxisList> choices;
    for (uint32_t set = 1; set < uint32_t{1} << axes_.size(); ++set) {
      AxisList axes;
      for (size_t a = 0; a < axes_.size(); ++a) {
        if ((set >> a & 1) != 0 && !type.sharding.Uses(axes_[a])) axes.push_back(axes_[a]);
      }
      if (!axes.empty()) choices.push_back(axes);
    }
    std::ranges::stable_sort(choices, [&](const AxisList& a, const AxisList& b) {
      return mesh_.size(a) > mesh_.size(b);
    });
    for (const AxisList& axes : choices) {
      if (const auto dim = DimFor(type, axes)) return Shard{.axes = axes, .dim = *dim};
      if (axes.axes().size() > 1) continue;
      if (const auto dim = UnevenDim(type)) return Shard{.axes = axes, .dim = *dim, .uneven = true};
    }
    return std::nullopt;
  }

  // The largest dimension that nothing splits.
  std::optional<size_t> UnevenDim(const TensorType& type) const {
    std::optional<size_t> found;
    for (size_t d = 0; d < type.dims.size(); ++d) {
      if (type.dims[d] < 2 || !type.sharding.at(d).empty()) continue;
      if (!found.has_value() || type.dims[d] > type.dims[*found]) found = d;
    }
    return found;
  }

  // The first dimension that nothing splits, or else the first, of those that divide.
  std::optional<size_t> DimFor(const TensorType& type, const AxisList& axes) const {
    std::optional<size_t> found;
    for (size_t d = 0; d < type.dims.size(); ++d) {
      const AxisList before = type.sharding.at(d);
      if (type.dims[d] % (mesh_.size(before) * mesh_.size(axes)) != 0) continue;
      if (before.empty()) return d;
      if (!found.has_value()) found = d;
    }
    return found;
  }

  void PlanUpdate(const ParameterUpdate& update) {
    const Shard* shard = PlanParameter(stage_.update, update.parameter);
    if (shard == nullptr) return;
    const Function& function = stage_.update.function;
    const ir::Dims& dims = function.type(update.parameter).dims;
    for (const ValueId state : update.states) {
      // Means over the dimension of the shard are whole.
      if (!ir::HasDimension(dims, function.type(state).dims, shard->dim)) continue;
      plan_.states[OriginOf(stage_.update, state)] = *shard;
    }
  }

  // Units are runs of parameters in the order of their first use.
  void SetUnits() {
    std::vector<ValueId> origins;
    std::vector<UnitMember> members;
    std::map<std::string, int64_t> kinds;
    absl::flat_hash_map<ValueId, size_t> position;
    const auto add = [&](const StageFunction& part, ValueId value) {
      const ValueId origin = OriginOf(part, value);
      const Shard* shard = ZeroPlan::Find(plan_.parameters, origin);
      const bool is_new = shard != nullptr && position.try_emplace(origin, origins.size()).second;
      if (!is_new) return;
      const TensorType& type = part.function.type(value);
      const std::string kind = ir::ToString(shard->Of(type), mesh_);
      origins.push_back(origin);
      members.push_back({.kind = kinds.try_emplace(kind, std::ssize(kinds)).first->second,
                         .size = ir::SizeOf(ir::LocalType(type, mesh_))});
    };
    for (const StageFunction* part : {&stage_.forward, &stage_.backward, &stage_.weights}) {
      for (const OpId op : part->function.order()) {
        for (const ValueId operand : part->function.operands(op)) add(*part, operand);
      }
    }
    const std::vector<int32_t> units = FindUnits(members);
    for (size_t i = 0; i < origins.size(); ++i) plan_.parameters[origins[i]].unit = units[i];
    // The gradient of a weight goes with those of the layer that reads its copy.
    for (const WeightCopy& weight : FindWeightCopies(stage_.update.function)) {
      const auto copy = plan_.parameters.find(OriginOf(stage_.update, weight.copy));
      const auto own = plan_.parameters.find(OriginOf(stage_.update, weight.parameter));
      if (own == plan_.parameters.end() || copy == plan_.parameters.end()) continue;
      own->second.unit = copy->second.unit;
    }
  }

  const ZeroOptions& options_;
  const PipelineStage& stage_;
  const ir::Mesh& mesh_;
  std::vector<AxisIndex> axes_;  // that may shard parameters
  ZeroPlan plan_;
};

}  // namespace
}  // namespace zero_plan_cc

ir::TensorType Shard::Of(ir::TensorType type) const {
  ir::AxisList split = type.sharding.at(dim);
  for (const ir::AxisIndex axis : axes.axes()) {
    split.push_back(axis);
    if (type.sharding.partial.contains(axis)) {
      type.sharding.partial = type.sharding.partial.Without(axis);
    }
  }
  type.sharding.Set(dim, type.dims.size(), split);
  return type;
}

std::vector<ParameterUpdate> UpdatesOf(const ir::Function& update) {
  std::vector<ParameterUpdate> updates;
  for (const ir::OpId op : update.order()) {
    if (update.info(op).op_class != ir::OpClass::kOptimizer) continue;
    const ir::OptimizerOperands operands(update, op);
    for (size_t i = 0; i < operands.count(); ++i) {
      ParameterUpdate& row = updates.emplace_back();
      row.optimizer = op;
      row.parameter = operands.parameters()[i];
      row.gradient = operands.gradients()[i];
      for (size_t group = 1; group + 1 < operands.groups(); ++group) {
        row.states.push_back(operands.all()[operands.Position(group, i)]);
      }
    }
  }
  return updates;
}

std::vector<ZeroPlan> PlanZero(const ZeroOptions& options, const PipelinedStep& step) {
  std::vector<ZeroPlan> plans;
  for (const PipelineStage& stage : step.stages)
    plans.push_back(zero_plan_cc::Planner(options, stage).Run());
  if (options.stage >= 2) PlanGradients(step, plans);
  return plans;
}

}  // namespace orrery::transforms
