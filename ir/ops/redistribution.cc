#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "ir/layout.h"
#include "ir/op_info.h"
#include "ir/ops/exchange.h"
#include "ir/tensor_parts.h"
#include "support/status.h"

// Ops that change how a value is sharded: one collective each, or none. `axes` are those along
// which ranks work together; what they split is always the innermost part of a dimension.

namespace orrery::ir {

absl::Status ParseAxes(const AttributeSet& attributes, const Mesh& mesh, AxisList& axes) {
  const std::string names = attributes.String("axes", "");
  for (const absl::string_view name : absl::StrSplit(names, '.', absl::SkipEmpty())) {
    const auto axis = mesh.Find(name);
    if (!axis.has_value() || axes.contains(*axis)) {
      return absl::InvalidArgumentError(
          absl::StrCat("axes=\"", names, "\" are no axes of ", ToString(mesh)));
    }
    axes.push_back(*axis);
  }
  if (!axes.empty()) return absl::OkStatus();
  return absl::InvalidArgumentError("the attribute axes is missing; wanted the axes to work along");
}

absl::Status InferSameAsOperand(const OpTypes& op, TypeList& results) {
  const TensorType& x = *op.operands[0];
  results.push_back({.dtype = x.dtype, .dims = x.dims, .sharding = x.sharding});
  return absl::OkStatus();
}

absl::StatusOr<size_t> DimOfOp(const OpTypes& op, absl::string_view name) {
  const int64_t dim = op.attributes.Int(name, -1);
  if (dim >= 0 && dim < static_cast<int64_t>(op.operands[0]->dims.size())) {
    return static_cast<size_t>(dim);
  }
  return absl::InvalidArgumentError(
      absl::StrCat(name, "=", dim, " is no dimension of its operand"));
}

absl::StatusOr<AxisList> AxesOfOp(const OpTypes& op) {
  AxisList axes;
  ORRERY_RETURN_IF_ERROR(ParseAxes(op.attributes, op.mesh, axes));
  return axes;
}

Tensor PlaceOf(const GroupExchange& exchange) {
  return Tensor(exchange.parts[0]->dtype(),
                LocalDims(exchange.result.sharding, exchange.result.dims, exchange.mesh,
                          exchange.ranks[static_cast<size_t>(exchange.position)]));
}

Tensor FetchHeld(const GroupExchange& exchange) {
  const auto rank = [&](size_t i) { return exchange.ranks[i]; };
  const int64_t own = rank(static_cast<size_t>(exchange.position));
  const AxisList& partial = exchange.operand.sharding.partial;
  Tensor held = PlaceOf(exchange);
  for (size_t i = 0; i < exchange.parts.size(); ++i) {
    if (PartOf(exchange.mesh, rank(i), partial) != PartOf(exchange.mesh, own, partial)) continue;
    CopyHeld(*exchange.parts[i], {.type = exchange.operand, .rank = rank(i)},
             {.type = exchange.result, .rank = own}, exchange.mesh, held);
  }
  return held;
}

namespace redistribution_cc {
namespace {

absl::Status TakePartial(const OpTypes& op, const AxisList& axes, Sharding& sharding) {
  for (const AxisIndex axis : axes.axes()) {
    if (!sharding.partial.contains(axis)) {
      return absl::InvalidArgumentError(
          absl::StrCat("its operand is not partial over ", op.mesh.axes()[axis].name));
    }
    sharding.partial = sharding.partial.Without(axis);
    sharding.reductions[axis] = Reduction::kSum;
  }
  return absl::OkStatus();
}

// Takes `axes` off the inner end of what splits dimension `dim`.
absl::Status TakeSplit(const OpTypes& op, const AxisList& axes, size_t dim, TensorType& type) {
  const AxisList before = type.sharding.at(dim);
  const auto split = before.axes(), taken = axes.axes();
  if (split.size() < taken.size() || !std::ranges::equal(split.last(taken.size()), taken)) {
    return absl::InvalidArgumentError(
        absl::StrCat("dimension ", dim, " of its operand is not split over ", op.mesh.Names(axes)));
  }
  AxisList rest;
  for (const AxisIndex axis : split.first(split.size() - taken.size())) rest.push_back(axis);
  if (!rest.empty() && type.sharding.block(dim) != kNestedChunks) {
    return absl::InvalidArgumentError(absl::StrCat("dimension ", dim,
                                                   " of its operand is in blocks, which all of ",
                                                   op.mesh.Names(before), " leave together"));
  }
  type.sharding.Set(dim, type.dims.size(), rest);
  return absl::OkStatus();
}

// Puts `axes` at the inner end of what splits dimension `dim`. With `uneven`, the last ranks along
// an axis may have less than the others, or nothing; with `block`, of a dimension that nothing
// splits, they have blocks of that size in turn.
absl::Status AddSplit(const OpTypes& op, const AxisList& axes, size_t dim, TensorType& type) {
  AxisList split = type.sharding.at(dim);
  const int64_t block = op.attributes.Int("block", kNestedChunks);
  if (!split.empty() && (block != kNestedChunks || type.sharding.block(dim) != kNestedChunks)) {
    return absl::InvalidArgumentError(
        absl::StrCat("dimension ", dim, " of its operand is split over ", op.mesh.Names(split),
                     "; blocks are dealt to all ranks at once"));
  }
  for (const AxisIndex axis : axes.axes()) {
    if (type.sharding.Uses(axis)) {
      return absl::InvalidArgumentError(
          absl::StrCat("its operand is sharded over ", op.mesh.axes()[axis].name));
    }
    split.push_back(axis);
  }
  const bool uneven = op.attributes.Int("uneven", 0) != 0 || block != kNestedChunks;
  if (type.dims[dim] % op.mesh.size(split) != 0 && !uneven) {
    return absl::InvalidArgumentError(absl::StrCat(
        "dimension ", dim, " (", type.dims[dim], ") does not divide over ", op.mesh.Names(split)));
  }
  type.sharding.Set(dim, type.dims.size(), split, block);
  return absl::OkStatus();
}

absl::Status ShardAllReduce(const OpTypes& op, TypeList& results) {
  ORRERY_ASSIGN_OR_RETURN(const AxisList axes, AxesOfOp(op));
  return TakePartial(op, axes, results[0].sharding);
}

absl::Status ShardAllGather(const OpTypes& op, TypeList& results) {
  ORRERY_ASSIGN_OR_RETURN(const AxisList axes, AxesOfOp(op));
  ORRERY_ASSIGN_OR_RETURN(const size_t dim, DimOfOp(op, "dim"));
  return TakeSplit(op, axes, dim, results[0]);
}

absl::Status ShardAllSlice(const OpTypes& op, TypeList& results) {
  ORRERY_ASSIGN_OR_RETURN(const AxisList axes, AxesOfOp(op));
  ORRERY_ASSIGN_OR_RETURN(const size_t dim, DimOfOp(op, "dim"));
  return AddSplit(op, axes, dim, results[0]);
}

absl::Status ShardReduceScatter(const OpTypes& op, TypeList& results) {
  ORRERY_ASSIGN_OR_RETURN(const AxisList axes, AxesOfOp(op));
  ORRERY_ASSIGN_OR_RETURN(const size_t dim, DimOfOp(op, "dim"));
  ORRERY_RETURN_IF_ERROR(TakePartial(op, axes, results[0].sharding));
  return AddSplit(op, axes, dim, results[0]);
}

absl::Status ShardAllToAll(const OpTypes& op, TypeList& results) {
  ORRERY_ASSIGN_OR_RETURN(const AxisList axes, AxesOfOp(op));
  ORRERY_ASSIGN_OR_RETURN(const size_t from, DimOfOp(op, "from"));
  ORRERY_ASSIGN_OR_RETURN(const size_t to, DimOfOp(op, "to"));
  if (from == to) {
    return absl::InvalidArgumentError(
        absl::StrCat("from=", from, " and to=", to, " are one dimension; wanted two"));
  }
  ORRERY_RETURN_IF_ERROR(TakeSplit(op, axes, from, results[0]));
  return AddSplit(op, axes, to, results[0]);
}

// The number of parts that one step along an axis of `axes` skips; 0 for an axis that is not there.
int64_t PartsWithin(const Mesh& mesh, const AxisList& axes, AxisIndex axis) {
  int64_t parts = 0;
  for (const AxisIndex other : axes.axes()) {
    if (parts > 0) parts *= mesh.size(other);
    if (other == axis) parts = 1;
  }
  return parts;
}

// Whether a dimension that `before` splits and then `after` has parts that move along `group` only.
bool StaysWithin(const Mesh& mesh, const AxisList& before, const AxisList& after,
                 const AxisList& group) {
  for (AxisIndex axis = 0; axis < static_cast<AxisIndex>(mesh.axes().size()); ++axis) {
    const bool moves = PartsWithin(mesh, before, axis) != PartsWithin(mesh, after, axis);
    if (moves && !group.contains(axis)) return false;
  }
  return true;
}

// Of a permutation: `to` has the axes that split each dimension after it, "dp.hp;;pp".
absl::Status ShardPermute(const OpTypes& op, TypeList& results) {
  ORRERY_ASSIGN_OR_RETURN(const AxisList group, AxesOfOp(op));
  TensorType& type = results[0];
  const std::string text = op.attributes.String("to", "");
  const std::vector<std::string> lists = absl::StrSplit(text, ';');
  if (lists.size() != type.dims.size()) {
    return absl::InvalidArgumentError(absl::StrCat("to=\"", text, "\" has ", lists.size(),
                                                   " lists of axes; wanted one a dimension, ",
                                                   type.dims.size()));
  }
  const Sharding before = type.sharding;
  AxisList used = before.partial;
  for (size_t d = 0; d < lists.size(); ++d) {
    AxisList axes;
    const AttributeSet names = {{"axes", lists[d]}};
    if (!lists[d].empty()) ORRERY_RETURN_IF_ERROR(ParseAxes(names, op.mesh, axes));
    for (const AxisIndex axis : axes.axes()) {
      if (used.contains(axis)) {
        return absl::InvalidArgumentError(absl::StrCat(
            "to=\"", text, "\" has ", op.mesh.axes()[axis].name, " twice, or it is partial"));
      }
      used.push_back(axis);
    }
    if (op.mesh.size(axes) != op.mesh.size(before.at(d))) {
      return absl::InvalidArgumentError(
          absl::StrCat("to=\"", text, "\" splits dimension ", d, " into ", op.mesh.size(axes),
                       " parts; wanted ", op.mesh.size(before.at(d)), ", as it is"));
    }
    const bool within = StaysWithin(op.mesh, before.at(d), axes, group);
    if (!within) {
      return absl::InvalidArgumentError(absl::StrCat("to=\"", text, "\" changes axes of dimension ",
                                                     d, " beyond ", op.mesh.Names(group)));
    }
    type.sharding.Set(d, type.dims.size(), axes, before.block(d));
  }
  return absl::OkStatus();
}

Tensor ExchangeAllReduce(const GroupExchange& exchange) {
  AxisList axes;
  const absl::Status status = ParseAxes(exchange.attributes, exchange.mesh, axes);
  return status.ok() ? Reduced(exchange.parts, exchange.operand.sharding, axes, exchange.mesh)
                     : Tensor();
}

// Of what is reduced the rank's own part.
Tensor ExchangeReduceScatter(const GroupExchange& exchange) {
  const Tensor reduced = ExchangeAllReduce(exchange);
  const int64_t rank = exchange.ranks[static_cast<size_t>(exchange.position)];
  Tensor held = PlaceOf(exchange);
  CopyHeld(reduced, {.type = exchange.operand, .rank = rank},
           {.type = exchange.result, .rank = rank}, exchange.mesh, held);
  return held;
}

}  // namespace
}  // namespace redistribution_cc

extern const OpInfo kAllReduceOp = {
    .name = "AllReduce",
    .summary = "the sum over the ranks along `axes`, on each of them",
    .op_class = OpClass::kCollective,
    .operands = 1,
    .infer = InferSameAsOperand,
    .infer_sharding = redistribution_cc::ShardAllReduce,
    .exchange = redistribution_cc::ExchangeAllReduce,
    .in_place_from = 0,
};

extern const OpInfo kAllGatherOp = {
    .name = "AllGather",
    .summary = "dimension `dim`, whose innermost split is over `axes`, put together over them",
    .op_class = OpClass::kCollective,
    .operands = 1,
    .infer = InferSameAsOperand,
    .infer_sharding = redistribution_cc::ShardAllGather,
    .exchange = FetchHeld,
};

extern const OpInfo kReduceScatterOp = {
    .name = "ReduceScatter",
    .summary = "the sum over the ranks along `axes`, split over them along dimension `dim`",
    .op_class = OpClass::kCollective,
    .operands = 1,
    .infer = InferSameAsOperand,
    .infer_sharding = redistribution_cc::ShardReduceScatter,
    .exchange = redistribution_cc::ExchangeReduceScatter,
};

extern const OpInfo kAllToAllOp = {
    .name = "AllToAll",
    .summary = "`axes`, the innermost split of dimension `from`, split dimension `to` in its place",
    .op_class = OpClass::kCollective,
    .operands = 1,
    .infer = InferSameAsOperand,
    .infer_sharding = redistribution_cc::ShardAllToAll,
    .exchange = FetchHeld,
};

extern const OpInfo kPermuteOp = {
    .name = "Permute",
    .summary =
        "whole parts trade places along `axes`: `to` has the axes of each dimension after it",
    .op_class = OpClass::kCollective,
    .operands = 1,
    .infer = InferSameAsOperand,
    .infer_sharding = redistribution_cc::ShardPermute,
    .exchange = FetchHeld,
};

// Each rank has the whole already, so nothing moves.
extern const OpInfo kAllSliceOp = {
    .name = "AllSlice",
    .summary = "of dimension `dim` the part that falls to each rank along `axes`",
    .op_class = OpClass::kView,
    .operands = 1,
    .infer = InferSameAsOperand,
    .infer_sharding = redistribution_cc::ShardAllSlice,
    .in_place_from = 0,
    .linear = true,
};

}  // namespace orrery::ir
