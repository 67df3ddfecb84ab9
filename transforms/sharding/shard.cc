#include "transforms/sharding/shard.h"

#include <algorithm>
#include <array>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "absl/strings/str_cat.h"
#include "ir/builder.h"
#include "ir/op_info.h"
#include "ir/op_kind.h"
#include "ir/optimizer_operands.h"
#include "support/check.h"
#include "support/status.h"
#include "transforms/pass/pass.h"
#include "transforms/sharding/shard_plan.h"
#include "transforms/training/microbatch.h"

namespace orrery::transforms {
namespace shard_cc {
namespace {

using ir::AxisIndex;
using ir::AxisList;
using ir::Function;
using ir::OpId;
using ir::OutputRole;
using ir::TensorType;
using ir::ValueId;

class Sharder {
 public:
  Sharder(const Function& function, const ir::Mesh& mesh, const std::vector<bool>& batched)
      : function_(function),
        batched_(batched),
        builder_(function.name(), mesh),
        values_(function.value_limit()),
        whole_(function.value_limit()),
        eager_(function.value_limit(), 0) {
    dp_ = Axis("dp");
    hp_ = Axis("hp");
    builder_.function().Reserve(function.op_limit() + function.op_limit() / 2,
                                function.value_limit() + function.op_limit() / 2);
  }

  absl::StatusOr<Function> Run() {
    ORRERY_RETURN_IF_ERROR(Inputs());
    for (const ir::Output& output : function_.outputs()) {
      if (output.role == OutputRole::kResult || output.role == OutputRole::kLoss) {
        eager_[output.value] = 1;
      }
    }
    for (const OpId op : function_.order()) {
      ORRERY_RETURN_IF_ERROR(CopyOp(op));
      if (!builder_.status().ok()) return builder_.status();
    }
    for (const ir::Output& output : function_.outputs()) {
      builder_.Return(Whole(output.value), output.role,
                      output.of.valid() ? values_[output.of] : ValueId());
    }
    return std::move(builder_).Finalize();
  }

 private:
  // The axis, unless it has one rank only: then there is nothing to split.
  std::optional<AxisIndex> Axis(absl::string_view name) const {
    const auto axis = builder_.function().mesh().Find(name);
    return axis.has_value() && builder_.function().mesh().size(*axis) > 1 ? axis : std::nullopt;
  }

  absl::Status Inputs() {
    IdTable<ValueId, int8_t> plan(function_.value_limit(), -1);
    if (hp_.has_value()) {
      ORRERY_ASSIGN_OR_RETURN(TensorSplits splits,
                              PlanTensorSplits(function_, builder_.function().mesh().size(*hp_)));
      plan = std::move(splits.dims);
    }
    for (size_t i = 0; i < function_.inputs().size(); ++i) {
      const ir::Input& input = function_.inputs()[i];
      TensorType type = function_.type(input.value);
      if (dp_.has_value() && batched_[i]) {
        ORRERY_RETURN_IF_ERROR(Split(input.value, 0, *dp_, type));
      }
      if (const int8_t dim = plan[input.value]; dim >= 0) {
        ORRERY_RETURN_IF_ERROR(Split(input.value, static_cast<size_t>(dim), *hp_, type));
      }
      values_[input.value] = builder_.AddInput(function_.value_name(input.value), type, input.role);
    }
    return absl::OkStatus();
  }

  absl::Status Split(ValueId value, size_t dim, AxisIndex axis, TensorType& type) const {
    const ir::Axis& split = builder_.function().mesh().axes()[axis];
    AxisList axes = type.sharding.at(dim);
    axes.push_back(axis);
    if (type.dims[dim] % builder_.function().mesh().size(axes) != 0) {
      return UnevenSplitStatus({.axis = split.name,
                                .ranks = split.size,
                                .dim = dim,
                                .value = ir::PrintValue(function_, value),
                                .size = type.dims[dim]});
    }
    type.sharding.Set(dim, type.dims.size(), axes);
    return absl::OkStatus();
  }

  // `value` after all that is pending on it has been reduced.
  ValueId Whole(ValueId value) {
    const TensorType type = builder_.type(values_[value]);
    if (type.sharding.partial.empty()) return values_[value];
    if (whole_[value].valid()) return whole_[value];
    const absl::string_view name = function_.value_name(value);
    const std::string axes = builder_.function().mesh().Names(type.sharding.partial);
    if (!name.empty()) {
      builder_.function().SetName(values_[value], absl::StrCat(name, ".partial"));
    }
    whole_[value] = builder_.Op(ir::OpKind::kAllReduce, {values_[value]}, name, {{"axes", axes}});
    return whole_[value];
  }

  // Whether the op passes partial operands on, none of which has been reduced by now.
  bool PassesPartial(OpId op) const {
    absl::InlinedVector<const AxisList*, 4> partial;
    bool any = false;
    for (const ValueId operand : function_.operands(op)) {
      const AxisList& axes = builder_.function().type(values_[operand]).sharding.partial;
      if (whole_[operand].valid()) return false;
      partial.push_back(&axes);
      any = any || !axes.empty();
    }
    return any && ir::PassesPartial(function_.info(op), partial);
  }

  absl::Status CopyOp(OpId op) {
    if (function_.info(op).op_class == ir::OpClass::kOptimizer) AlignGradients(op);
    const bool passes = PassesPartial(op);
    operands_.clear();
    for (const ValueId operand : function_.operands(op)) {
      operands_.push_back(passes ? values_[operand] : Whole(operand));
    }
    if (!builder_.status().ok()) return builder_.status();
    ORRERY_RETURN_IF_ERROR(AlignSplits(op));
    names_.clear();
    for (int32_t i = 0; i < function_.result_count(op); ++i) {
      names_.push_back(function_.value_name(function_.result(op, i)));
    }
    OpId copy;
    if (function_.info(op).infer == nullptr) {
      copy = builder_.TypedOp(function_.kind(op), operands_, function_.type(function_.result(op)),
                              names_[0], function_.attributes(op));
    } else {
      copy = builder_.Ops(function_.kind(op), operands_, names_, function_.attributes(op));
    }
    if (!copy.valid()) return builder_.status();
    for (int32_t i = 0; i < function_.result_count(op); ++i) {
      values_[function_.result(op, i)] = builder_.function().result(copy, i);
      // What is returned as it is becomes whole at once, among the ops that it belongs to.
      if (eager_[function_.result(op, i)] != 0) Whole(function_.result(op, i));
    }
    return builder_.status();
  }

  // Makes the splits of the operands ones that the op can take: what runs over one factor is split
  // alike, and an axis splits one factor.
  absl::Status AlignSplits(OpId op) {
    const ir::OpInfo& info = function_.info(op);
    if (info.sharding == nullptr) return absl::OkStatus();
    absl::InlinedVector<const TensorType*, 4> types;
    ir::TypeList results;
    for (const ValueId operand : operands_) types.push_back(&builder_.function().type(operand));
    for (int32_t i = 0; i < function_.result_count(op); ++i) {
      results.push_back(function_.type(function_.result(op, i)));
    }
    bool split = false;
    for (const TensorType* type : types) split = split || !type->sharding.split.empty();
    if (!split) return absl::OkStatus();
    const ir::ShardingRule rule =
        info.sharding({function_.attributes(op), types, builder_.function().mesh()}, results);
    FactorAxes wanted = ChooseSplits(rule);
    KeepWhatDivides(rule, types, results, wanted);
    for (size_t i = 0; i < operands_.size(); ++i) {
      const ir::ShardingRule::Factors& factors = rule.operands[i];
      for (size_t d = 0; d < factors.size(); ++d) {
        if (factors[d] == ir::kNoFactor || At(wanted, factors[d]).empty()) Gather(operands_[i], d);
      }
      for (size_t d = 0; d < factors.size(); ++d) {
        if (factors[d] != ir::kNoFactor) Resplit(operands_[i], d, At(wanted, factors[d]));
      }
    }
    return builder_.status();
  }

  // The axes of each factor. Whoever comes first has the say; operand 1 comes before operand 0, as
  // it is the weight of a product, whose gradient has to be split as it is.
  using FactorAxes = std::array<AxisList, 32>;
  static AxisList& At(FactorAxes& axes, int8_t factor) { return axes[static_cast<size_t>(factor)]; }
  static const AxisList& At(const FactorAxes& axes, int8_t factor) {
    return axes[static_cast<size_t>(factor)];
  }
  FactorAxes ChooseSplits(const ir::ShardingRule& rule) const {
    FactorAxes chosen;
    AxisList taken;
    for (size_t turn = 0; turn < operands_.size(); ++turn) {
      const size_t i = turn < 2 && operands_.size() > 1 ? 1 - turn : turn;
      for (size_t d = 0; d < rule.operands[i].size(); ++d) {
        const int8_t factor = rule.operands[i][d];
        const AxisList axes = builder_.function().type(operands_[i]).sharding.at(d);
        const bool is_free = factor != ir::kNoFactor && At(chosen, factor).empty() &&
                             std::none_of(axes.axes().begin(), axes.axes().end(),
                                          [&](AxisIndex axis) { return taken.contains(axis); });
        if (axes.empty() || !is_free) continue;
        At(chosen, factor) = axes;
        for (const AxisIndex axis : axes.axes()) taken.push_back(axis);
      }
    }
    return chosen;
  }

  // A factor is not split at all where one of the dimensions that run over it does not divide:
  // three heads of keys beside twelve columns.
  void KeepWhatDivides(const ir::ShardingRule& rule, std::span<const TensorType* const> operands,
                       const ir::TypeList& results, FactorAxes& wanted) const {
    const auto check = [&](const ir::ShardingRule::Factors& factors, const ir::Dims& dims) {
      for (size_t d = 0; d < factors.size(); ++d) {
        if (factors[d] == ir::kNoFactor) continue;
        AxisList& axes = At(wanted, factors[d]);
        if (dims[d] % builder_.function().mesh().size(axes) != 0) axes = AxisList();
      }
    };
    for (size_t i = 0; i < operands.size(); ++i) check(rule.operands[i], operands[i]->dims);
    for (size_t j = 0; j < results.size(); ++j) check(rule.results[j], results[j].dims);
  }

  // Splits dimension `d` of `value` over `axes`; a whole one is cut, which moves nothing.
  void Resplit(ValueId& value, size_t d, const AxisList& axes) {
    if (!builder_.status().ok() || builder_.type(value).sharding.at(d) == axes) return;
    Gather(value, d);
    if (axes.empty()) return;
    value = builder_.Op(
        ir::OpKind::kAllSlice, {value}, "",
        {{"axes", builder_.function().mesh().Names(axes)}, {"dim", static_cast<int64_t>(d)}});
  }

  // Makes dimension `d` of `value` whole on each rank.
  void Gather(ValueId& value, size_t d) {
    if (!builder_.status().ok() || builder_.type(value).sharding.at(d).empty()) return;
    const std::string axes = builder_.function().mesh().Names(builder_.type(value).sharding.at(d));
    value = builder_.Op(ir::OpKind::kAllGather, {value}, "",
                        {{"axes", axes}, {"dim", static_cast<int64_t>(d)}});
  }

  // Splits the gradients of an optimizer as their parameters are; before they are reduced, so that
  // there is less to reduce.
  void AlignGradients(OpId op) {
    const ir::OptimizerOperands operands(function_, op);
    for (size_t i = operands.count(); i < operands.all().size(); ++i) {
      const ValueId operand = operands.all()[i];
      const ValueId parameter = operands.parameters()[operands.ParameterOf(i)];
      const ir::Sharding wanted =
          ir::SplitBeside(builder_.type(values_[parameter]), function_.type(operand).dims);
      const AxisList partial = builder_.type(values_[operand]).sharding.partial;
      const bool clash = std::any_of(partial.axes().begin(), partial.axes().end(),
                                     [&](AxisIndex axis) { return wanted.Uses(axis); });
      if (clash) Whole(operand);
      ValueId& value = whole_[operand].valid() ? whole_[operand] : values_[operand];
      const ValueId old = value;
      const size_t rank = builder_.type(value).dims.size();
      for (size_t d = 0; d < rank; ++d) {
        if (builder_.type(value).sharding.at(d) != wanted.at(d)) Gather(value, d);
      }
      for (size_t d = 0; d < rank; ++d) Resplit(value, d, wanted.at(d));
      if (value == old || !builder_.status().ok()) continue;
      const std::string name(builder_.function().value_name(old));
      if (name.empty()) continue;
      builder_.function().SetName(old, absl::StrCat(name, ".unaligned"));
      builder_.function().SetName(value, name);
    }
  }

  const Function& function_;
  const std::vector<bool>& batched_;  // by input
  ir::Builder builder_;
  IdTable<ValueId, ValueId> values_;  // of the old function: its copy, as it came out
  IdTable<ValueId, ValueId> whole_;   // its copy after the reduction, once there is one
  IdTable<ValueId, char> eager_;
  std::optional<AxisIndex> dp_, hp_;
  std::vector<ValueId> operands_;
  std::vector<absl::string_view> names_;
};

absl::StatusOr<bool> RunShard(Function& function, const PassOptions& options) {
  ORRERY_ASSIGN_OR_RETURN(const int64_t dp, PositiveOption(options, "dp"));
  ORRERY_ASSIGN_OR_RETURN(const int64_t hp, PositiveOption(options, "hp"));
  if (!function.mesh().empty()) {
    return absl::InvalidArgumentError("the function is sharded over a mesh already");
  }
  const std::vector<ir::Axis> axes = {{"dp", dp}, {"hp", hp}};
  if (!ir::Mesh::Fits(axes)) {
    return absl::InvalidArgumentError(
        absl::StrCat("got dp=", dp, " and hp=", hp, "; wanted at most 2^40 ranks"));
  }
  const ir::Mesh mesh(axes);
  ORRERY_ASSIGN_OR_RETURN(function, Shard(function, mesh));
  return true;
}

}  // namespace
}  // namespace shard_cc

absl::Status UnevenSplitStatus(const UnevenSplit& split) {
  return InfeasibleStatus(
      {.reason = InfeasibleReason::kDivisibility,
       .detail = absl::StrCat(split.axis, "=", split.ranks, ": dimension ", split.dim, " of ",
                              split.value, " (", split.size, ") does not divide")});
}

absl::StatusOr<ir::Function> Shard(const ir::Function& function, const ir::Mesh& mesh,
                                   const std::vector<bool>& batched) {
  ORRERY_CHECK(batched.size() == function.inputs().size()) << function.name();
  return shard_cc::Sharder(function, mesh, batched).Run();
}

absl::StatusOr<ir::Function> Shard(const ir::Function& function, const ir::Mesh& mesh) {
  return Shard(function, mesh, BatchedInputs(function));
}

extern const PassInfo kShardPass = {
    .name = "shard",
    .summary = "shards a training step over dp data-parallel and hp horizontal ranks",
    .options = "dp=1,hp=1",
    .run = shard_cc::RunShard,
};

}  // namespace orrery::transforms
