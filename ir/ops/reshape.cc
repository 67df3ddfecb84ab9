#include <algorithm>

#include "ir/op_info.h"
#include "ir/op_kind.h"
#include "ir/ops/movement.h"

// Ops that give the elements of a tensor other dimensions, or repeat them along one, without moving
// any.

namespace orrery::ir {
namespace reshape_cc {
namespace {

absl::Status EvaluateSameElements(Evaluation& e) {
  e.results[0] = e.operand(0).Reshaped(e.results[0].dims());
  return absl::OkStatus();
}

// `shape` with its -1 filled in; nothing when it is no shape, or not of `count` elements.
std::optional<Dims> ResolveShape(std::vector<int64_t> shape, int64_t count) {
  const auto open = std::find(shape.begin(), shape.end(), -1);
  if (open != shape.end()) {
    *open = 1;
    const int64_t rest = CheckedCount(shape);
    if (rest == 0 || count % rest != 0) return std::nullopt;
    *open = count / rest;
  }
  const bool is_shape = std::all_of(shape.begin(), shape.end(), [](int64_t n) { return n >= 0; });
  if (!is_shape || CheckedCount(shape) != count) return std::nullopt;
  return Dims(shape.begin(), shape.end());
}

absl::Status InferReshape(const OpTypes& op, TypeList& results) {
  const TensorType& x = *op.operands[0];
  const std::vector<int64_t> shape = op.attributes.Ints("shape");
  const std::optional<Dims> dims = ResolveShape(shape, ElementCount(x.dims));
  if (!dims.has_value()) {
    return absl::InvalidArgumentError(
        absl::StrCat("cannot reshape ", Show(x.dims), " to [", absl::StrJoin(shape, ","),
                     "]; wanted as many elements, and at most one -1"));
  }
  return AddResult(op, *dims, results);
}

// For each dimension of `from` the one of `to` that begins at the same position of the row-major
// order: a split of the one is a split of the other, even when their sizes differ, as each part
// stays contiguous. Dimensions of size 1 have none.
std::vector<std::optional<size_t>> SamePositions(const Dims& from, const Dims& to) {
  std::vector<std::optional<size_t>> same(from.size());
  if (ElementCount(from) == 0) return same;
  int64_t from_position = 1, to_position = 1;
  for (size_t d = 0, e = 0; d < from.size() && e < to.size();) {
    if (from[d] == 1) {
      ++d;
    } else if (to[e] == 1) {
      ++e;
    } else {
      if (from_position == to_position) same[d] = e;
      const int64_t next_from = from_position * from[d], next_to = to_position * to[e];
      if (next_from <= next_to) ++d, from_position = next_from;
      if (next_to <= next_from) ++e, to_position = next_to;
    }
  }
  return same;
}

ShardingRule SamePositionsRule(const OpTypes& op, const TypeList& results) {
  const Dims &from = op.operands[0]->dims, &to = results[0].dims;
  ShardingRule::Factors x(from.size(), kNoFactor), y(to.size(), kNoFactor);
  const std::vector<std::optional<size_t>> same = SamePositions(from, to);
  for (size_t d = 0; d < from.size(); ++d) {
    if (same[d].has_value()) x[d] = y[*same[d]] = static_cast<int8_t>(d);
  }
  return {.operands = {x}, .results = {y}};
}

// The gradient goes back to the shape of x. Where the shape left a dimension open, for the batch,
// so does the way back: the dimension of x that has the batch or, where nobody knows it, the one
// that begins at the same position.
absl::Status ReshapeGradient(GradientContext& c) {
  const Dims to = c.operand_type(0).dims;
  std::vector<int64_t> back(to.begin(), to.end());
  const std::vector<int64_t> shape = c.attributes().Ints("shape");
  const bool open = std::find(shape.begin(), shape.end(), -1) != shape.end();
  if (open && c.batch_dim(0) >= 0) {
    back[static_cast<size_t>(c.batch_dim(0))] = -1;
    return SetGradientOp(c, 0, OpKind::kReshape, {{"shape", back}});
  }
  const auto same = SamePositions(to, c.builder().type(c.result()).dims);
  for (size_t d = 0; d < back.size(); ++d) {
    if (same[d].has_value() && shape[*same[d]] == -1) back[d] = -1;
  }
  return SetGradientOp(c, 0, OpKind::kReshape, {{"shape", back}});
}

absl::Status InferSqueeze(const OpTypes& op, TypeList& results) {
  const TensorType& x = *op.operands[0];
  const std::vector<int64_t> axes = op.attributes.Ints("axes");
  ORRERY_RETURN_IF_ERROR(CheckAxes(axes, x.dims.size()));
  Dims dims;
  for (size_t d = 0; d < x.dims.size(); ++d) {
    if (!PositionOf(axes, d).has_value()) {
      dims.push_back(x.dims[d]);
    } else if (x.dims[d] != 1) {
      return absl::InvalidArgumentError(absl::StrCat("dimension ", d, " of ", Show(x.dims),
                                                     " cannot be left out; wanted size 1"));
    }
  }
  return AddResult(op, std::move(dims), results);
}

absl::Status InferUnsqueeze(const OpTypes& op, TypeList& results) {
  const TensorType& x = *op.operands[0];
  const std::vector<int64_t> axes = op.attributes.Ints("axes");
  const size_t rank = x.dims.size() + axes.size();
  ORRERY_RETURN_IF_ERROR(CheckAxes(axes, rank));
  Dims dims;
  for (size_t d = 0, from = 0; d < rank; ++d) {
    dims.push_back(PositionOf(axes, d).has_value() ? 1 : x.dims[from++]);
  }
  return AddResult(op, std::move(dims), results);
}

// The long side of a Squeeze or an Unsqueeze has the dimensions `axes` besides those of the other.
ShardingRule SqueezeRule(const OpTypes& op, const TypeList& results) {
  const bool shrinks = op.operands[0]->dims.size() > results[0].dims.size();
  const std::vector<int64_t> axes = op.attributes.Ints("axes");
  const size_t rank = std::max(op.operands[0]->dims.size(), results[0].dims.size());
  ShardingRule::Factors wide, narrow;
  for (size_t d = 0; d < rank; ++d) {
    const bool extra = PositionOf(axes, d).has_value();
    wide.push_back(extra ? kNoFactor : static_cast<int8_t>(d));
    if (!extra) narrow.push_back(static_cast<int8_t>(d));
  }
  if (shrinks) return {.operands = {wide}, .results = {narrow}};
  return {.operands = {narrow}, .results = {wide}};
}

absl::Status SqueezeGradient(GradientContext& c) {
  return SetGradientOp(c, 0, OpKind::kUnsqueeze, c.attributes());
}

absl::Status UnsqueezeGradient(GradientContext& c) {
  return SetGradientOp(c, 0, OpKind::kSqueeze, c.attributes());
}

absl::Status InferExpand(const OpTypes& op, TypeList& results) {
  const TensorType& x = *op.operands[0];
  const std::vector<int64_t> shape = op.attributes.Ints("shape");
  const size_t rank = x.dims.size();
  bool fits = shape.size() >= rank;
  Dims dims(shape.begin(), shape.end());
  for (size_t d = 0; fits && d < shape.size(); ++d) {
    const bool is_new = d < shape.size() - rank;
    const int64_t own = is_new ? 1 : x.dims[d - (shape.size() - rank)];
    if (shape[d] == -1 && !is_new) dims[d] = own;
    fits = dims[d] >= 0 && (own == 1 || dims[d] == own);
  }
  if (fits) return AddResult(op, std::move(dims), results);
  return absl::InvalidArgumentError(
      absl::StrCat("cannot expand ", Show(x.dims), " to [", absl::StrJoin(shape, ","),
                   "]; wanted the same sizes where they are not 1, or -1"));
}

absl::Status EvaluateExpand(Evaluation& e) {
  const Tensor& x = e.operand(0);
  Tensor& y = e.results[0];
  for (Odometer at(y.dims(), {BroadcastStrides(x.dims(), y.dims())}); !at.done(); at.Next()) {
    y.CopyElement(at.index(), x, at.offset(0));
  }
  return absl::OkStatus();
}

absl::Status ExpandGradient(GradientContext& c) {
  c.SetOperandGradient(0, Unbroadcast(c, c.result_gradient(), 0));
  return c.builder().status();
}

// ElementwiseRule, but a dimension that is made here belongs to no operand and stays whole.
ShardingRule ExpandRule(const OpTypes& op, const TypeList& results) {
  ShardingRule rule = ElementwiseRule(op, results);
  ShardingRule::Factors& y = rule.results[0];
  const ShardingRule::Factors& x = rule.operands[0];
  for (int8_t& factor : y) {
    if (std::find(x.begin(), x.end(), factor) == x.end()) factor = kNoFactor;
  }
  return rule;
}

}  // namespace
}  // namespace reshape_cc

extern const OpInfo kReshapeOp = {
    .name = "Reshape",
    .summary = "x with the dimensions `shape`; a -1 stands for what is left",
    .op_class = OpClass::kView,
    .operands = 1,
    .infer = reshape_cc::InferReshape,
    .sharding = reshape_cc::SamePositionsRule,
    .evaluate = reshape_cc::EvaluateSameElements,
    .gradient = reshape_cc::ReshapeGradient,
    .strided_view = true,
    .linear = true,
};

extern const OpInfo kSqueezeOp = {
    .name = "Squeeze",
    .summary = "x without its dimensions `axes`, which have size 1",
    .op_class = OpClass::kView,
    .operands = 1,
    .infer = reshape_cc::InferSqueeze,
    .sharding = reshape_cc::SqueezeRule,
    .evaluate = reshape_cc::EvaluateSameElements,
    .gradient = reshape_cc::SqueezeGradient,
    .strided_view = true,
    .linear = true,
};

extern const OpInfo kUnsqueezeOp = {
    .name = "Unsqueeze",
    .summary = "x with dimensions of size 1 more, which are `axes` of the result",
    .op_class = OpClass::kView,
    .operands = 1,
    .infer = reshape_cc::InferUnsqueeze,
    .sharding = reshape_cc::SqueezeRule,
    .evaluate = reshape_cc::EvaluateSameElements,
    .gradient = reshape_cc::UnsqueezeGradient,
    .strided_view = true,
    .linear = true,
};

extern const OpInfo kExpandOp = {
    .name = "Expand",
    .summary =
        "x repeated to the dimensions `shape`, where -1 keeps that of x; dimension "
        "`batch_dim` follows the batch",
    .op_class = OpClass::kView,
    .operands = 1,
    .infer = reshape_cc::InferExpand,
    .sharding = reshape_cc::ExpandRule,
    .evaluate = reshape_cc::EvaluateExpand,
    .gradient = reshape_cc::ExpandGradient,
    .strided_view = true,
    .linear = true,
};

}  // namespace orrery::ir
