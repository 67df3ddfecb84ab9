#include "ir/op_info.h"
#include "ir/op_kind.h"
#include "ir/ops/reduction.h"

// Ops that take or write one element for each index, at the position of the index but along one
// dimension.

namespace orrery::ir {
namespace gather_elements_cc {
namespace {

size_t AxisOf(const AttributeSet& attributes) {
  return static_cast<size_t>(attributes.Int("axis", 0));
}

// Indices have the rank of x, and no dimension that is longer, but for the axis.
absl::Status CheckPositions(const OpTypes& op) {
  const TensorType &x = *op.operands[0], &ids = *op.operands[1];
  ORRERY_RETURN_IF_ERROR(CheckAxis(op.attributes, x.dims.size()));
  ORRERY_RETURN_IF_ERROR(CheckIndices(ids));
  bool fits = ids.dims.size() == x.dims.size();
  for (size_t d = 0; fits && d < x.dims.size(); ++d) {
    fits = d == AxisOf(op.attributes) || ids.dims[d] <= x.dims[d];
  }
  if (fits) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("got shapes ", Show(x.dims), " and ", Show(ids.dims),
                   "; wanted indices of the same rank and no larger, but for dimension ",
                   op.attributes.Int("axis", 0)));
}

// Calls use(position in a tensor of dims `x`, position of the index), where `x` has the position.
template <typename Use>
absl::Status ForEachIndex(const Dims& x, size_t axis, const HeldPositions& held, const Tensor& ids,
                          Use use) {
  Dims strides = StridesOf(x);
  const int64_t stride = strides[axis];
  strides[axis] = 0;
  for (Odometer at(ids.dims(), {strides}); !at.done(); at.Next()) {
    ORRERY_ASSIGN_OR_RETURN(const int64_t index, HeldIndexAt(ids, at.index(), held));
    if (index < 0 || index >= x[axis]) continue;
    use(at.offset(0) + index * stride, at.index());
  }
  return absl::OkStatus();
}

// Dimensions of the same size are split alike; the axis of x has no factor yet.
ShardingRule::Factors FactorsBut(const Dims& dims, const Dims& other, size_t axis) {
  ShardingRule::Factors factors(dims.size(), kNoFactor);
  for (size_t d = 0; d < dims.size(); ++d) {
    if (d != axis && dims[d] == other[d]) factors[d] = static_cast<int8_t>(d);
  }
  return factors;
}

absl::Status InferGatherElements(const OpTypes& op, TypeList& results) {
  ORRERY_RETURN_IF_ERROR(CheckPositions(op));
  return AddResult(op, op.operands[1]->dims, results);
}

ShardingRule GatherElementsRule(const OpTypes& op, const TypeList&) {
  const size_t axis = AxisOf(op.attributes);
  auto x = FactorsBut(op.operands[0]->dims, op.operands[1]->dims, axis);
  auto ids = x;
  ids[axis] = static_cast<int8_t>(axis);
  // Each rank takes what it holds; but bools have no sum.
  if (op.operands[0]->dtype != DType::kBool) x[axis] = static_cast<int8_t>(x.size());
  return {.operands = {x, ids}, .results = {ids}};
}

absl::Status EvaluateGatherElements(Evaluation& e) {
  const size_t axis = AxisOf(e.attributes);
  return ForEachIndex(
      e.operand(0).dims(), axis,
      {.first = e.OperandFirst(0, axis), .whole = e.OperandWhole(0, axis)}, e.operand(1),
      [&](int64_t from, int64_t to) { e.results[0].CopyElement(to, e.operand(0), from); });
}

// Where the indices did not reach, nothing came from x.
absl::Status GatherElementsGradient(GradientContext& c) {
  const Dims x = c.operand_type(0).dims, ids = c.operand_type(1).dims;
  const int64_t axis = c.attributes().Int("axis", 0);
  std::vector<int64_t> axes, before, after;
  for (size_t d = 0; d < x.size(); ++d) {
    if (d == static_cast<size_t>(axis) || ids[d] == x[d]) continue;
    axes.push_back(static_cast<int64_t>(d));
    before.push_back(0);
    after.push_back(x[d] - ids[d]);
  }
  ValueId dx = c.builder().Op(OpKind::kGatherElementsGrad, {c.operand(1), c.result_gradient()},
                              axes.empty() ? c.GradientName(0) : "",
                              {{"axis", axis}, {"size", x[static_cast<size_t>(axis)]}});
  if (!axes.empty()) {
    dx = c.builder().Op(OpKind::kPad, {dx}, c.GradientName(0),
                        {{"axes", axes}, {"before", before}, {"after", after}});
  }
  c.SetOperandGradient(0, dx);
  return c.builder().status();
}

absl::Status InferGatherElementsGrad(const OpTypes& op, TypeList& results) {
  const TensorType &ids = *op.operands[0], &dy = *op.operands[1];
  ORRERY_RETURN_IF_ERROR(CheckAxis(op.attributes, ids.dims.size()));
  ORRERY_RETURN_IF_ERROR(CheckIndices(ids));
  if (ids.dims != dy.dims) {
    return absl::InvalidArgumentError(
        absl::StrCat("shapes differ; got ", Show(ids.dims), " and ", Show(dy.dims)));
  }
  Dims dims = dy.dims;
  dims[AxisOf(op.attributes)] = op.attributes.Int("size", 0);
  return AddResult(op, std::move(dims), results, 1);
}

ShardingRule GatherElementsGradRule(const OpTypes& op, const TypeList& results) {
  const size_t axis = AxisOf(op.attributes);
  auto x = FactorsBut(results[0].dims, op.operands[0]->dims, axis);
  auto ids = x;
  ids[axis] = static_cast<int8_t>(axis);
  x[axis] = static_cast<int8_t>(x.size());
  return {.operands = {ids, ids}, .results = {x}, .made = x[axis]};
}

absl::Status EvaluateGatherElementsGrad(Evaluation& e) {
  const size_t axis = AxisOf(e.attributes);
  return ForEachIndex(
      e.results[0].dims(), axis, {.first = e.ResultFirst(0, axis), .whole = e.ResultWhole(0, axis)},
      e.operand(0),
      [&](int64_t to, int64_t from) { AddElement(e.results[0], to, e.operand(1), from); });
}

absl::Status InferScatterElements(const OpTypes& op, TypeList& results) {
  ORRERY_RETURN_IF_ERROR(CheckPositions(op));
  ORRERY_RETURN_IF_ERROR(CheckScatter(op, op.operands[1]->dims));
  return InferUnary(op, results);
}

ShardingRule ScatterElementsRule(const OpTypes& op, const TypeList&) {
  const auto row = FactorsBut(op.operands[0]->dims, op.operands[1]->dims, AxisOf(op.attributes));
  ShardingRule rule{.operands = {}, .results = {row}};
  rule.operands.resize(op.operands.size(), row);
  return rule;
}

absl::Status EvaluateScatterElements(Evaluation& e) {
  const std::string reduction = e.attributes.String("reduction", "none");
  const double value = e.attributes.Number("value", 0);
  Tensor& y = e.results[0];
  y = e.operand(0);
  const size_t axis = AxisOf(e.attributes);
  return ForEachIndex(y.dims(), axis, {.first = 0, .whole = y.dims()[axis]}, e.operand(1),
                      [&](int64_t to, int64_t from) {
                        if (e.has_operand(2)) {
                          Update(y, to, e.operand(2), from, reduction);
                        } else {
                          y.SetNumber(to, value);
                        }
                      });
}

absl::Status ScatterElementsGradient(GradientContext& c) {
  return ScatterGradient(c, OpKind::kScatterElements, OpKind::kGatherElements,
                         {{"axis", c.attributes().Int("axis", 0)}});
}

}  // namespace
}  // namespace gather_elements_cc

extern const OpInfo kGatherElementsOp = {
    .name = "GatherElements",
    .summary =
        "for each index the element of x in its place, but for dimension `axis`, where the "
        "index says which",
    .operands = 2,
    .infer = gather_elements_cc::InferGatherElements,
    .bytes = GatheredBytes,
    .sharding = gather_elements_cc::GatherElementsRule,
    .evaluate = gather_elements_cc::EvaluateGatherElements,
    .gradient = gather_elements_cc::GatherElementsGradient,
    .no_gradient = 0b10,
};

extern const OpInfo kGatherElementsGradOp = {
    .name = "GatherElementsGrad",
    .summary =
        "gradient of x from the indices and the gradient of the elements: zeros, `size` along "
        "dimension `axis`, split over the axes `split`, to which each element is added",
    .operands = 2,
    .infer = gather_elements_cc::InferGatherElementsGrad,
    .flops = OneFlopALastElement,
    .sharding = gather_elements_cc::GatherElementsGradRule,
    .evaluate = gather_elements_cc::EvaluateGatherElementsGrad,
};

extern const OpInfo kScatterElementsOp = {
    .name = "ScatterElements",
    .summary =
        "x, but each of the updates (or `value`) written in its place, but for dimension "
        "`axis`, where the index says which; `reduction` none, add, mul, max or min",
    .operands = 3,
    .optional = 1,
    .infer = gather_elements_cc::InferScatterElements,
    .flops = ScatterFlops,
    .sharding = gather_elements_cc::ScatterElementsRule,
    .evaluate = gather_elements_cc::EvaluateScatterElements,
    .gradient = gather_elements_cc::ScatterElementsGradient,
    .no_gradient = 0b10,
};

}  // namespace orrery::ir
