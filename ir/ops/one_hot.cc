#include <cmath>

#include "ir/op_info.h"
#include "ir/ops/movement.h"

// Ops that fill a tensor from little or nothing.

namespace orrery::ir {
namespace one_hot_cc {
namespace {

size_t AxisOf(const AttributeSet& attributes) {
  return static_cast<size_t>(attributes.Int("axis", 0));
}

// The attribute `to`, or the dtype of the operand.
absl::StatusOr<DType> DTypeOf(const OpTypes& op) {
  const std::string name = op.attributes.String("to", ToString(op.operands[0]->dtype));
  if (const std::optional<DType> dtype = ParseDType(name); dtype.has_value()) return *dtype;
  return absl::InvalidArgumentError(
      absl::StrCat("to=\"", name, "\"; wanted an element type, as f32"));
}

absl::Status InferOneHot(const OpTypes& op, TypeList& results) {
  ORRERY_ASSIGN_OR_RETURN(const DType dtype, DTypeOf(op));
  Dims dims = op.operands[0]->dims;
  ORRERY_RETURN_IF_ERROR(CheckAxis(op.attributes, dims.size() + 1));
  dims.insert(dims.begin() + op.attributes.Int("axis", 0), op.attributes.Int("depth", 0));
  results.push_back({.dtype = dtype, .dims = std::move(dims), .sharding = {}});
  return absl::OkStatus();
}

ShardingRule OneHotRule(const OpTypes& op, const TypeList& results) {
  ShardingRule::Factors ids, y;
  for (size_t d = 0; d < results[0].dims.size(); ++d) {
    if (d == AxisOf(op.attributes)) {
      y.push_back(kNoFactor);
      continue;
    }
    y.push_back(static_cast<int8_t>(ids.size()));
    ids.push_back(static_cast<int8_t>(ids.size()));
  }
  return {.operands = {ids}, .results = {y}};
}

absl::Status EvaluateOneHot(Evaluation& e) {
  const AroundDim around = SplitAround(e.results[0].dims(), AxisOf(e.attributes));
  const double on = e.attributes.Number("on", 1), off = e.attributes.Number("off", 0);
  for (int64_t i = 0; i < e.results[0].size(); ++i) {
    const int64_t row = i / (around.size * around.inner) * around.inner + i % around.inner;
    const int64_t position = i / around.inner % around.size;
    double hot = std::trunc(e.operand(0).Number(row));
    if (hot < 0) hot += static_cast<double>(around.size);
    e.results[0].SetNumber(i, hot == static_cast<double>(position) ? on : off);
  }
  return absl::OkStatus();
}

absl::Status InferRandomLike(const OpTypes& op, TypeList& results) {
  ORRERY_ASSIGN_OR_RETURN(const DType dtype, DTypeOf(op));
  results.push_back({.dtype = dtype, .dims = op.operands[0]->dims, .sharding = {}});
  return absl::OkStatus();
}

absl::Status EvaluateRandomLike(Evaluation& e) {
  for (int64_t i = 0; i < e.results[0].size(); ++i) {
    e.results[0].SetNumber(i, e.attributes.Number("value", 0));
  }
  return absl::OkStatus();
}

}  // namespace
}  // namespace one_hot_cc

extern const OpInfo kOneHotOp = {
    .name = "OneHot",
    .summary =
        "`on` where the index is the position along the new dimension `axis` of size `depth`, "
        "else `off`, as `to`; a negative index counts from the end",
    .operands = 1,
    .infer = one_hot_cc::InferOneHot,
    .sharding = one_hot_cc::OneHotRule,
    .evaluate = one_hot_cc::EvaluateOneHot,
    .no_gradient = 0b1,
};

extern const OpInfo kRandomLikeOp = {
    .name = "RandomLike",
    .summary =
        "random numbers `to` that dtype and of the dimensions of x, which is not read; "
        "evaluated, all are `value`",
    .operands = 1,
    .infer = one_hot_cc::InferRandomLike,
    .flops = OneFlopAnElement,
    .sharding = ElementwiseRule,
    .evaluate = one_hot_cc::EvaluateRandomLike,
    .no_gradient = 0b1,
    .random = true,
};

}  // namespace orrery::ir
