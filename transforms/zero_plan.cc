#include "transforms/zero_plan.h"

#include <algorithm>
#include <map>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "transforms/units.h"
#include "transforms/zero_part.h"

namespace orrery::transforms {
namespace {

using ir::AxisIndex;
using ir::AxisList;
using ir::Function;
using ir::InputRole;
using ir::OpId;
using ir::TensorType;
using ir::ValueId;

// The axes along which ranks do the same to other samples or positions.
constexpr absl::string_view kDataAxes[] = {"dp", "ep", "cp"};

class Planner {
 public:
  Planner(const ZeroOptions& options, const PipelineStage& stage)
      : options_(options), stage_(stage), mesh_(stage.update.function.mesh()),
        uses_(ir::CountUses(stage.update.function)) {
    const bool grouped = options.group > 0 && mesh_.Find(kZeroAxis).has_value();
    for (AxisIndex axis = 0; axis < static_cast<AxisIndex>(mesh_.axes().size()); ++axis) {
      const std::string& name = mesh_.axes()[axis].name;
      const bool data = grouped ? name == kZeroAxis
                                : std::ranges::find(kDataAxes, name) != std::end(kDataAxes);
      if (data && mesh_.size(axis) > 1) axes_.push_back(axis);
    }
  }

  ZeroPlan Run() {
    plan_.gathers = options_.stage >= 3;
    if (axes_.empty()) return std::move(plan_);
    ForEachUpdate([this](const Update& update) { PlanUpdate(update); });
    for (const StageFunction* part : {&stage_.forward, &stage_.backward}) {
      for (const ir::Input& input : part->function.inputs()) {
        if (plan_.gathers && input.role == InputRole::kParameter) {
          PlanParameter(*part, input.value);
        }
      }
    }
    if (options_.stage < 2) return std::move(plan_);
    SetUnits();
    FindMade();
    ForEachUpdate([this](const Update& update) { PlanGradient(update); });
    return std::move(plan_);
  }

 private:
  // What an optimizer does to one parameter.
  struct Update {
    ValueId parameter, gradient;
    std::vector<ValueId> states;
  };

  template <typename Use>
  void ForEachUpdate(Use use) const {
    const Function& function = stage_.update.function;
    for (const OpId op : function.order()) {
      if (function.info(op).op_class != ir::OpClass::kOptimizer) continue;
      const auto operands = function.operands(op);
      const auto n = static_cast<size_t>(function.attributes(op).Int("parameters", 1));
      for (size_t i = 0; i < n; ++i) {
        Update update{.parameter = operands[i],
                      .gradient = operands[operands.size() - n + i],
                      .states = {}};
        for (size_t s = i + n; s + n < operands.size(); s += n) {
          update.states.push_back(operands[s]);
        }
        use(update);
      }
    }
  }

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
    }
    return std::nullopt;
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

  void PlanUpdate(const Update& update) {
    const Shard* shard = PlanParameter(stage_.update, update.parameter);
    if (shard == nullptr) return;
    for (const ValueId state : update.states) {
      plan_.states[OriginOf(stage_.update, state)] = *shard;
    }
  }

  // Which origins backward makes.
  void FindMade() {
    const Function& backward = stage_.backward.function;
    for (const OpId op : backward.order()) {
      for (int32_t i = 0; i < backward.result_count(op); ++i) {
        made_.insert(OriginOf(stage_.backward, backward.result(op, i)));
      }
    }
  }

  // What backward leaves, where all that the update does to it is to reduce it.
  void PlanGradient(const Update& update) {
    const Shard* shard =
        ZeroPlan::Find(plan_.parameters, OriginOf(stage_.update, update.parameter));
    if (shard == nullptr) return;
    const Function& function = stage_.update.function;
    ValueId gradient = update.gradient;
    const OpId maker = function.producer(gradient);
    if (maker.valid() && function.kind(maker) == ir::OpKind::kAllReduce && uses_[gradient] == 1) {
      gradient = function.operands(maker)[0];
    }
    const ValueId origin = OriginOf(stage_.update, gradient);
    const bool left = !function.producer(gradient).valid() && uses_[gradient] == 1;
    if (left && origin.valid() && made_.contains(origin)) plan_.gradients[origin] = *shard;
  }

  // Units are runs of parameters in the order of their first use.
  void SetUnits() {
    std::vector<ValueId> origins;
    std::vector<UnitMember> members;
    std::map<std::string, int64_t> kinds;
    absl::flat_hash_map<ValueId, size_t> place;
    const auto add = [&](const StageFunction& part, ValueId value) {
      const ValueId origin = OriginOf(part, value);
      const Shard* shard = ZeroPlan::Find(plan_.parameters, origin);
      const bool is_new = shard != nullptr && place.try_emplace(origin, origins.size()).second;
      if (!is_new) return;
      const TensorType& type = part.function.type(value);
      const std::string kind = ir::ToString(shard->Of(type), mesh_);
      origins.push_back(origin);
      members.push_back({.kind = kinds.try_emplace(kind, std::ssize(kinds)).first->second,
                         .size = ir::SizeOf(ir::LocalType(type, mesh_))});
    };
    for (const StageFunction* part : {&stage_.forward, &stage_.backward, &stage_.update}) {
      for (const OpId op : part->function.order()) {
        for (const ValueId operand : part->function.operands(op)) add(*part, operand);
      }
    }
    const std::vector<int32_t> units = FindUnits(members);
    for (size_t i = 0; i < origins.size(); ++i) plan_.parameters[origins[i]].unit = units[i];
  }

  const ZeroOptions& options_;
  const PipelineStage& stage_;
  const ir::Mesh& mesh_;
  std::vector<AxisIndex> axes_;  // that may share parameters out
  const IdTable<ValueId, int32_t> uses_;  // in the update
  absl::flat_hash_set<ValueId> made_;     // origins that backward makes
  ZeroPlan plan_;
};

}  // namespace

TensorType Shard::Of(TensorType type) const {
  AxisList split = type.sharding.at(dim);
  for (const AxisIndex axis : axes.axes()) {
    split.push_back(axis);
    if (type.sharding.partial.contains(axis)) {
      type.sharding.partial = type.sharding.partial.Without(axis);
    }
  }
  type.sharding.Set(dim, type.dims.size(), split);
  return type;
}

ZeroPlan PlanZero(const ZeroOptions& options, const PipelineStage& stage) {
  return Planner(options, stage).Run();
}

}  // namespace orrery::transforms
