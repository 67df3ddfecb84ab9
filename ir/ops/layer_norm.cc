#include <cmath>

#include "ir/builder.h"
#include "ir/ops/checks.h"
#include "ir/ops/kernels.h"
#include "support/status.h"

// Layer normalization over the dimensions from `axis` on: y = (x - mean) / sqrt(variance + epsilon)
// times gamma plus beta (Ba, Kiros & Hinton 2016). Its gradient is one kernel, as frameworks run
// it.

namespace orrery::ir {
namespace {

constexpr double kForwardFlops = 8;  // an element: 4 for the statistics, 2 to normalize, 2 to scale
constexpr double kBackwardFlops = 14;  // an element

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
  AddResult(results, x.dtype, x.dims);
  const DType statistics = StatisticsType(x.dtype);
  for (int i = 0; i < 2; ++i) AddResult(results, statistics, StatisticsDims(x.dims, axis));
  return absl::OkStatus();
}

double ElementsOfFirst(const OpTypes& op) {
  return static_cast<double>(ElementCount(op.operands[0]->dims));
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

absl::Status EvaluateLayerNorm(Evaluation& e) {
  const AroundDim rows = RowsOf(e);
  const double epsilon = e.attributes.Number("epsilon", 1e-5);
  const auto n = static_cast<double>(rows.size);
  for (int64_t row = 0; row < rows.outer; ++row) {
    double mean = 0, variance = 0;
    const int64_t start = row * rows.size;
    for (int64_t i = 0; i < rows.size; ++i) mean += e.operand(0).Number(start + i) / n;
    for (int64_t i = 0; i < rows.size; ++i) {
      const double centered = e.operand(0).Number(start + i) - mean;
      variance += centered * centered / n;
    }
    const double rstd = 1 / std::sqrt(variance + epsilon);
    e.results[1].SetNumber(row, mean);
    e.results[2].SetNumber(row, rstd);
    for (int64_t i = 0; i < rows.size; ++i) {
      const double beta = e.has_operand(2) ? e.operand(2).Number(i) : 0;
      const double normal = (e.operand(0).Number(start + i) - mean) * rstd;
      e.results[0].SetNumber(start + i, normal * e.operand(1).Number(i) + beta);
    }
  }
  return absl::OkStatus();
}

absl::Status LayerNormGradient(GradientContext& c) {
  if (!c.result_gradient(0).valid() || c.result_gradient(1).valid() ||
      c.result_gradient(2).valid()) {
    return absl::UnimplementedError("no gradient of the statistics, only of the normalized values");
  }
  Builder& b = c.builder();
  const ValueId operands[] = {c.operand(0), c.operand(1), c.result(1), c.result(2),
                              c.result_gradient(0)};
  AttributeSet attributes;
  attributes.Set("axis", c.attributes().Int("axis", -1));
  const std::string dx = c.GradientName(0), dgamma = c.GradientName(1);
  const std::string dbeta = c.operand_count() > 2 ? c.GradientName(2) : "";
  const absl::string_view names[] = {dx, dgamma, dbeta};
  const OpId op = b.Ops(OpKind::kLayerNormGrad, operands, names, attributes);
  if (!op.valid()) return b.status();
  for (int i = 0; i < c.operand_count(); ++i) {
    c.SetOperandGradient(i, b.function().result(op, i));
  }
  return absl::OkStatus();
}

absl::Status InferLayerNormGrad(const OpTypes& op, TypeList& results) {
  ORRERY_ASSIGN_OR_RETURN(const size_t axis, AxisOf(op));
  const TensorType &x = *op.operands[0], &gamma = *op.operands[1];
  for (size_t i = 0; i < 5; ++i) ORRERY_RETURN_IF_ERROR(CheckFloat(op, i));
  ORRERY_RETURN_IF_ERROR(CheckDims(op, 1, From(x.dims, axis), "as what is normalized"));
  ORRERY_RETURN_IF_ERROR(CheckDims(op, 2, StatisticsDims(x.dims, axis), "(the means)"));
  ORRERY_RETURN_IF_ERROR(CheckDims(op, 3, StatisticsDims(x.dims, axis), "(the deviations)"));
  ORRERY_RETURN_IF_ERROR(CheckDims(op, 4, x.dims, "as x"));
  AddResult(results, x.dtype, x.dims);
  for (int i = 0; i < 2; ++i) AddResult(results, gamma.dtype, gamma.dims);
  return absl::OkStatus();
}

ShardingRule LayerNormGradSharding(const OpTypes& op, const TypeList&) {
  const auto rows = RowFactors(op), whole = Whole(*op.operands[1]);
  return {.operands = {rows, whole, rows, rows, rows}, .results = {rows, whole, whole}};
}

// With n the normalized x and g = dy gamma: dx = rstd (g - mean(g) - n mean(g n)).
absl::Status EvaluateLayerNormGrad(Evaluation& e) {
  const AroundDim rows = RowsOf(e);
  const Tensor &x = e.operand(0), &gamma = e.operand(1), &dy = e.operand(4);
  const auto n = static_cast<double>(rows.size);
  std::vector<double> dgamma(static_cast<size_t>(rows.size), 0), dbeta = dgamma;
  for (int64_t row = 0; row < rows.outer; ++row) {
    const double mean = e.operand(2).Number(row), rstd = e.operand(3).Number(row);
    const auto normal = [&](int64_t i) { return (x.Number(row * rows.size + i) - mean) * rstd; };
    double sum = 0, product = 0;
    for (int64_t i = 0; i < rows.size; ++i) {
      const double gradient = dy.Number(row * rows.size + i);
      dbeta[static_cast<size_t>(i)] += gradient;
      dgamma[static_cast<size_t>(i)] += gradient * normal(i);
      sum += gradient * gamma.Number(i) / n;
      product += gradient * gamma.Number(i) * normal(i) / n;
    }
    for (int64_t i = 0; i < rows.size; ++i) {
      const double scaled = dy.Number(row * rows.size + i) * gamma.Number(i);
      e.results[0].SetNumber(row * rows.size + i, rstd * (scaled - sum - normal(i) * product));
    }
  }
  e.results[1].floats() = std::move(dgamma);
  e.results[2].floats() = std::move(dbeta);
  return absl::OkStatus();
}

}  // namespace

extern const OpInfo kLayerNormOp = {
    .name = "LayerNorm",
    .summary =
        "x normalized over the dimensions from `axis` on, times gamma [plus beta]; mean; 1 / "
        "standard deviation",
    .operands = 3,
    .optional = 1,
    .results = 3,
    .infer = InferLayerNorm,
    .flops = [](const OpTypes& op, const TypeList&) { return kForwardFlops * ElementsOfFirst(op); },
    .sharding = LayerNormSharding,
    .evaluate = EvaluateLayerNorm,
    .gradient = LayerNormGradient,
};

extern const OpInfo kLayerNormGradOp = {
    .name = "LayerNormGrad",
    .summary =
        "gradients of x, gamma and beta of LayerNorm from x, gamma, mean, 1 / standard "
        "deviation and dy",
    .operands = 5,
    .results = 3,
    .infer = InferLayerNormGrad,
    .flops = [](const OpTypes& op,
                const TypeList&) { return kBackwardFlops * ElementsOfFirst(op); },
    .sharding = LayerNormGradSharding,
    .evaluate = EvaluateLayerNormGrad,
};

}  // namespace orrery::ir
