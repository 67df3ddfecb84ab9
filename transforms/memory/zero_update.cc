#include <algorithm>
#include <span>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "ir/op_info.h"
#include "ir/op_kind.h"
#include "ir/optimizer_operands.h"
#include "transforms/memory/zero_part.h"

namespace orrery::transforms {
namespace zero_update_cc {
namespace {

using ir::AxisIndex;
using ir::AxisList;
using ir::InputRole;
using ir::OpId;
using ir::OpKind;
using ir::ValueId;

// Reduces gradients to shards, updates shards, and gathers what has to be whole.
class UpdateSharder {
 public:
  UpdateSharder(const StageFunction& part, const ZeroPlan& plan)
      : plan_(plan), copy_(part), reduces_for_(copy_.from().op_limit()) {}

  absl::StatusOr<StageFunction> Run() {
    const ir::Function& from = copy_.from();
    FindReductions();
    for (const ir::Input& input : from.inputs()) AddInput(input);
    for (const OpId op : from.order()) {
      if (!copy_.status().ok()) break;
      if (reduces_for_[op] != nullptr) {
        Reduce(op, *reduces_for_[op]);
      } else if (IsOptimizer(op)) {
        UpdateShards(op);
      } else if (from.kind(op) == OpKind::kReceive) {
        Receive(op);
      } else if (from.kind(op) == OpKind::kAdd) {
        copy_[from.result(op)] =
            builder_.Op(OpKind::kAdd, {copy_[from.operands(op)[0]], copy_[from.operands(op)[1]]},
                        from.value_name(from.result(op)), from.attributes(op));
      } else if (from.kind(op) == OpKind::kCast) {  // the 8-bit copy of a weight, or of its shard
        copy_[from.result(op)] = builder_.Op(OpKind::kCast, {copy_[from.operands(op)[0]]},
                                             from.value_name(from.result(op)), from.attributes(op));
      } else {
        copy_.CopyOp(op);
      }
    }
    copy_.CopyOutputs();
    return std::move(copy_).Finish();
  }

 private:
  bool IsOptimizer(OpId op) const {
    return copy_.from().info(op).op_class == ir::OpClass::kOptimizer;
  }

  const Shard* ShardOf(ValueId parameter) const {
    return ZeroPlan::Find(plan_.parameters, copy_.OriginOf(parameter));
  }

  // Which all-reduces make the gradient of a parameter that is sharded, and nothing else.
  void FindReductions() {
    const ir::Function& from = copy_.from();
    const IdTable<ValueId, int32_t> uses = ir::CountUses(from);
    for (const OpId op : from.order()) {
      if (!IsOptimizer(op)) continue;
      const ir::OptimizerOperands operands(from, op);
      for (size_t i = 0; i < operands.count(); ++i) {
        const ValueId gradient = operands.gradients()[i];
        const OpId maker = from.producer(gradient);
        if (!maker.valid() || from.kind(maker) != OpKind::kAllReduce) continue;
        if (uses[gradient] == 1) reduces_for_[maker] = ShardOf(operands.parameters()[i]);
      }
    }
  }

  void AddInput(const ir::Input& input) {
    const ValueId origin = copy_.OriginOf(input.value);
    const Shard* shard = nullptr;
    if (input.role == InputRole::kState) {
      shard = ZeroPlan::Find(plan_.states, origin);
    } else if (ir::IsWeight(input.role)) {
      shard = plan_.gathers ? ZeroPlan::Find(plan_.parameters, origin) : nullptr;
    } else {
      shard = ZeroPlan::Find(plan_.gradients, origin);
    }
    if (shard == nullptr) {
      copy_.AddInput(input);
    } else {
      copy_.AddInput(input, shard->Of(copy_.from().type(input.value)));
    }
  }

  void Receive(OpId op) {
    const ir::Function& from = copy_.from();
    const ValueId old = from.result(op);
    const Shard* const shard = ZeroPlan::Find(plan_.received, old);
    if (shard == nullptr) return copy_.CopyOp(op);
    const OpId receive = builder_.TypedOp(OpKind::kReceive, {}, shard->Of(from.type(old)),
                                          from.value_name(old), from.attributes(op));
    if (!receive.valid()) return;
    copy_[old] = builder_.function().result(receive);
    copy_.TakeOrigin(old, copy_[old]);
  }

  bool IsShard(ValueId here, const Shard& shard) const {
    return type(here).sharding.at(shard.dim).contains(shard.axes.axes().front());
  }

  const ir::TensorType& type(ValueId here) const { return builder_.function().type(here); }

  // What is left to reduce, of the shard only.
  void Reduce(OpId op, const Shard& shard) {
    const ValueId old = copy_.from().result(op), whole = copy_.from().operands(op)[0];
    const std::string name(copy_.from().value_name(old));
    ValueId value = copy_[whole];
    AxisList rest = type(value).sharding.partial;
    for (const AxisIndex axis : shard.axes.axes()) rest = rest.Without(axis);
    if (!IsShard(value, shard))
      value = copy_.Scatter(value, shard, in_place_, rest.empty() ? name : "");
    if (!rest.empty() && copy_.status().ok()) {
      value = builder_.Op(OpKind::kAllReduce, {value}, name,
                          {{"axes", builder_.function().mesh().Names(rest)}});
    }
    copy_[old] = value;
  }

  void UpdateShards(OpId op) {
    const ir::Function& from = copy_.from();
    const ir::OptimizerOperands old(from, op);
    std::vector<ValueId> operands;
    for (size_t i = 0; i < old.all().size() && copy_.status().ok(); ++i) {
      const ValueId parameter = old.parameters()[old.ParameterOf(i)];
      const Shard* const shard = ShardOf(parameter);
      const ValueId here = copy_[old.all()[i]];
      const bool whole = shard != nullptr && !IsShard(here, *shard) &&
                         ir::HasDimension(from.type(parameter).dims, type(here).dims, shard->dim);
      operands.push_back(whole ? copy_.Scatter(here, *shard, in_place_, "") : here);
    }
    std::vector<std::string> names;
    for (size_t i = 0; i < old.first_gradient(); ++i) {
      const absl::string_view name = from.value_name(from.result(op, static_cast<int32_t>(i)));
      const bool gathered = i < old.count() && IsGathered(old.all()[i]) && !name.empty();
      names.push_back(gathered ? builder_.FreeName(absl::StrCat(name, ".shard"))
                               : std::string(name));
    }
    const std::vector<absl::string_view> views(names.begin(), names.end());
    const OpId copy = builder_.Ops(from.kind(op), operands, views, from.attributes(op));
    if (!copy.valid()) return;
    for (size_t i = 0; i < old.first_gradient(); ++i) {
      copy_[from.result(op, static_cast<int32_t>(i))] =
          builder_.function().result(copy, static_cast<int32_t>(i));
    }
    GatherUpdated(op);
  }

  // Whether the updated parameter has to become whole.
  bool IsGathered(ValueId parameter) const {
    return !plan_.gathers && ShardOf(parameter) != nullptr;
  }

  // All at once: those that one collective can carry out stand together.
  void GatherUpdated(OpId op) {
    const ir::Function& from = copy_.from();
    const std::span<const ValueId> parameters = ir::OptimizerOperands(from, op).parameters();
    std::vector<size_t> gathered;
    for (size_t i = 0; i < parameters.size(); ++i) {
      if (IsGathered(parameters[i])) gathered.push_back(i);
    }
    const auto key = [&](size_t i) {
      const ValueId parameter = parameters[i];
      return std::tuple(ShardOf(parameter)->axes, from.type(parameter).dtype);
    };
    std::ranges::stable_sort(gathered, [&](size_t a, size_t b) { return key(a) < key(b); });
    for (const size_t i : gathered) {
      const ValueId result = from.result(op, static_cast<int32_t>(i));
      copy_[result] = copy_.Gather(copy_[result], *ShardOf(from.operands(op)[i]), 0,
                                   std::string(from.value_name(result)));
    }
  }

  // Shards of parameters and of buckets of gradients lie where the whole does.
  const ir::AttributeSet in_place_ = {{"in_place", int64_t{1}}};
  const ZeroPlan& plan_;
  PartCopy copy_;
  ir::Builder& builder_ = copy_.builder();
  IdTable<OpId, const Shard*> reduces_for_;
};

}  // namespace
}  // namespace zero_update_cc

absl::StatusOr<StageFunction> ShardUpdatePart(const StageFunction& part, const ZeroPlan& plan) {
  return zero_update_cc::UpdateSharder(part, plan).Run();
}

}  // namespace orrery::transforms
