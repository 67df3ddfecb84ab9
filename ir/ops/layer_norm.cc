#include "ir/op_info.h"
#include "ir/op_kind.h"
#include "ir/ops/checks.h"
#include "ir/ops/kernels.h"
#include "ir/ops/normalization.h"
#include "support/status.h"

// Layer normalization over the dimensions from `axis` on: y = (x - mean) / sqrt(variance + epsilon)
// times gamma plus beta (Ba, Kiros & Hinton 2016). Its gradient is one kernel, as frameworks run
// it.

namespace orrery::ir {
namespace layer_norm_cc {
namespace {

absl::StatusOr<size_t> AxisOf(const OpTypes& op) {
  const size_t rank = op.operands[0]->dims.size();
  ORRERY_RETURN_IF_ERROR(CheckRankAtLeast(op, 0, 1, "[..,n]"));
  return AxisOrLast(op.attributes, rank);
}

Dims From(const Dims& dims, size_t axis) {
  return Dims(dims.begin() + static_cast<std::ptrdiff_t>(axis), dims.end());
}

// The dims of the statistics: those of x, 1 from the axis on.
Dims StatisticsDims(const Dims& dims, size_t axis) {
  Dims kept = dims;
  for (size_t d = axis; d < kept.size(); ++d) kept[d] = 1;
  return kept;
}

absl::Status InferLayerNorm(const OpTypes& op, TypeList& results) {
  ORRERY_ASSIGN_OR_RETURN(const size_t axis, AxisOf(op));
  ORRERY_RETURN_IF_ERROR(CheckFloat(op, 0));
  const TensorType& x = *op.operands[0];
  for (size_t i = 1; i < op.operands.size(); ++i) {
    ORRERY_RETURN_IF_ERROR(CheckFloat(op, i));
    ORRERY_RETURN_IF_ERROR(CheckDims(op, i, From(x.dims, axis), "as what is normalized"));
  }
  AddNormResults(x, StatisticsDims(x.dims, axis), results);
  return absl::OkStatus();
}

// Rows may be split, what is normalized together may not.
ShardingRule::Factors RowFactors(const OpTypes& op) {
  const size_t axis = AxisOf(op).value();
  ShardingRule::Factors factors(op.operands[0]->dims.size(), kNoFactor);
  for (size_t d = 0; d < axis; ++d) factors[d] = static_cast<int8_t>(d);
  return factors;
}

ShardingRule::Factors Whole(const TensorType& type) {
  return ShardingRule::Factors(type.dims.size(), kNoFactor);
}

ShardingRule LayerNormSharding(const OpTypes& op, const TypeList&) {
  const auto rows = RowFactors(op);
  ShardingRule rule = {.operands = {rows}, .results = {rows, rows, rows}};
  for (size_t i = 1; i < op.operands.size(); ++i) {
    rule.operands.push_back(Whole(*op.operands[i]));
  }
  return rule;
}

// x as rows, each of which is normalized.
AroundDim RowsOf(const Evaluation& e) {
  const Dims& dims = e.operand(0).dims();
  const size_t axis = AxisOrLast(e.attributes, dims.size()).value();
  AroundDim around{.outer = 1, .size = 1, .inner = 1};
  for (size_t d = 0; d < axis; ++d) around.outer *= dims[d];
  for (size_t d = axis; d < dims.size(); ++d) around.size *= dims[d];
  return around;
}

// All rows have the same scales.
int64_t PositionInRow(int64_t i, int64_t) { return i; }

absl::Status EvaluateLayerNorm(Evaluation& e) {
  const AroundDim rows = RowsOf(e);
  for (int64_t row = 0; row < rows.outer; ++row) {
    NormalizeRun(e, {.index = row, .size = rows.size}, PositionInRow);
  }
  return absl::OkStatus();
}

absl::Status LayerNormGradient(GradientContext& c) {
  return NormGradient(c, OpKind::kLayerNormGrad, {{"axis", c.attributes().Int("axis", -1)}});
}

absl::Status InferLayerNormGrad(const OpTypes& op, TypeList& results) {
  ORRERY_ASSIGN_OR_RETURN(const size_t axis, AxisOf(op));
  const Dims& x = op.operands[0]->dims;
  for (size_t i = 0; i < 5; ++i) ORRERY_RETURN_IF_ERROR(CheckFloat(op, i));
  ORRERY_RETURN_IF_ERROR(CheckDims(op, 1, From(x, axis), "as what is normalized"));
  return InferNormGrad(op, StatisticsDims(x, axis), results);
}

ShardingRule LayerNormGradSharding(const OpTypes& op, const TypeList&) {
  const auto rows = RowFactors(op), whole = Whole(*op.operands[1]);
  return {.operands = {rows, whole, rows, rows, rows}, .results = {rows, whole, whole}};
}

absl::Status EvaluateLayerNormGrad(Evaluation& e) {
  const AroundDim rows = RowsOf(e);
  for (int64_t row = 0; row < rows.outer; ++row) {
    NormalizeRunBack(e, {.index = row, .size = rows.size}, PositionInRow);
  }
  return absl::OkStatus();
}

}  // namespace
}  // namespace layer_norm_cc

extern const OpInfo kLayerNormOp = {
    .name = "LayerNorm",
    .summary =
        "x normalized over the dimensions from `axis` on, times gamma [plus beta]; mean; 1 / "
        "standard deviation",
    .operands = 3,
    .optional = 1,
    .results = 3,
    .infer = layer_norm_cc::InferLayerNorm,
    .flops = [](const OpTypes& op, const TypeList&) { return kNormFlops * ElementsOfFirst(op); },
    .sharding = layer_norm_cc::LayerNormSharding,
    .evaluate = layer_norm_cc::EvaluateLayerNorm,
    .gradient = layer_norm_cc::LayerNormGradient,
};

extern const OpInfo kLayerNormGradOp = {
    .name = "LayerNormGrad",
    .summary =
        "gradients of x, gamma and beta of LayerNorm from x, gamma, mean, 1 / standard "
        "deviation and dy",
    .operands = 5,
    .results = 3,
    .infer = layer_norm_cc::InferLayerNormGrad,
    .flops = [](const OpTypes& op,
                const TypeList&) { return kNormGradFlops * ElementsOfFirst(op); },
    .sharding = layer_norm_cc::LayerNormGradSharding,
    .evaluate = layer_norm_cc::EvaluateLayerNormGrad,
};

}  // namespace orrery::ir
