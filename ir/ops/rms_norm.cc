#include <algorithm>
#include <cmath>

#include "ir/op_info.h"
#include "ir/op_kind.h"
#include "ir/ops/checks.h"
#include "ir/ops/kernels.h"
#include "ir/ops/normalization.h"

// Root-mean-square norm over the last dimensions, from `axis` on (Zhang & Sennrich 2019). Gamma has
// those dimensions, or more of the last ones: groups of one dimension, each of which is normalized
// by itself, are a dimension before it (Mamba-2).

namespace orrery::ir {
namespace rms_norm_cc {
namespace {

absl::Status InferRmsNorm(const OpTypes& op, TypeList& results) {
  const TensorType &x = *op.operands[0], &gamma = *op.operands[1];
  const absl::StatusOr<size_t> axis = AxisOrLast(op.attributes, x.dims.size());
  if (!axis.ok()) return axis.status();
  const auto first = x.dims.begin() + static_cast<std::ptrdiff_t>(*axis);
  const Dims normalized(first, x.dims.end());
  const bool fits = gamma.dims.size() >= normalized.size() && gamma.dims.size() <= x.dims.size() &&
                    std::equal(gamma.dims.rbegin(), gamma.dims.rend(), x.dims.rbegin());
  if (!fits || gamma.dtype != x.dtype || !IsFloat(x.dtype)) {
    return absl::InvalidArgumentError(absl::StrCat(
        "got a gamma of ", ToString(gamma, op.mesh), " for x of ", ToString(x, op.mesh),
        "; wanted the normalized dimensions ", Show(normalized)));
  }
  results.push_back({.dtype = x.dtype, .dims = x.dims, .sharding = {}});
  results.push_back(
      {.dtype = StatisticsType(x.dtype), .dims = Dims(x.dims.begin(), first), .sharding = {}});
  return absl::OkStatus();
}

template <int kFlopsAnElement>
double NormFlops(const OpTypes& op, const TypeList&) {
  return kFlopsAnElement * ElementsOfFirst(op);
}

// A factor for each dimension before the normalized ones, which stay whole.
ShardingRule::Factors RowFactors(size_t rank, size_t rows) {
  ShardingRule::Factors factors(rank, kNoFactor);
  for (size_t d = 0; d < rows && d < rank; ++d) factors[d] = static_cast<int8_t>(d);
  return factors;
}

// Those of gamma: of its dimensions before the normalized ones.
ShardingRule::Factors GammaFactors(const OpTypes& op, const ShardingRule::Factors& x) {
  const auto own = static_cast<std::ptrdiff_t>(op.operands[1]->dims.size());
  return {x.end() - own, x.end()};
}

ShardingRule RmsNormSharding(const OpTypes& op, const TypeList& results) {
  const size_t rank = results[0].dims.size(), rows = results[1].dims.size();
  const ShardingRule::Factors x = RowFactors(rank, rows);
  return {.operands = {x, GammaFactors(op, x)}, .results = {x, RowFactors(rows, rows)}};
}

size_t LengthOfRows(const std::vector<double>& x, const std::vector<double>& rstd) {
  return rstd.empty() ? 0 : x.size() / rstd.size();
}

absl::Status EvaluateRmsNorm(Evaluation& e) {
  const std::vector<double>&x = e.operand(0).floats(), &gamma = e.operand(1).floats();
  std::vector<double>&y = e.results[0].floats(), &rstd = e.results[1].floats();
  const double epsilon = e.attributes.Number("epsilon", 1e-5);
  const size_t n = LengthOfRows(x, rstd);
  for (size_t row = 0; row < rstd.size(); ++row) {
    double square = 0;
    for (size_t at = row * n; at < (row + 1) * n; ++at) square += x[at] * x[at];
    rstd[row] = 1 / std::sqrt(square / static_cast<double>(n) + epsilon);
    for (size_t at = row * n; at < (row + 1) * n; ++at) {
      y[at] = x[at] * rstd[row] * gamma[at % gamma.size()];
    }
  }
  return absl::OkStatus();
}

absl::Status RmsNormGradient(GradientContext& c) {
  if (!c.result_gradient().valid()) return absl::OkStatus();
  Builder& b = c.builder();
  const std::string dx = c.GradientName(0), dgamma = c.GradientName(1);
  const absl::string_view names[] = {dx, dgamma};
  const ValueId operands[] = {c.operand(0), c.operand(1), c.result(1), c.result_gradient()};
  const OpId op = b.Ops(OpKind::kRmsNormGrad, operands, names, c.attributes());
  if (!op.valid()) return b.status();
  c.SetOperandGradient(0, b.function().result(op, 0));
  c.SetOperandGradient(1, b.function().result(op, 1));
  return absl::OkStatus();
}

absl::Status InferRmsNormGrad(const OpTypes& op, TypeList& results) {
  const TensorType &x = *op.operands[0], &gamma = *op.operands[1], &rstd = *op.operands[2];
  TypeList forward;
  if (absl::Status status = InferRmsNorm(op, forward); !status.ok()) return status;
  if (op.operands[3]->dims != x.dims || rstd.dims != forward[1].dims) {
    return absl::InvalidArgumentError(absl::StrCat("rstd and dy have shapes ", Show(rstd.dims),
                                                   " and ", Show(op.operands[3]->dims), "; wanted ",
                                                   Show(forward[1].dims), " and ", Show(x.dims)));
  }
  for (const size_t i : {2U, 3U}) {
    if (absl::Status status = CheckFloat(op, i); !status.ok()) return status;
  }
  results.push_back({.dtype = x.dtype, .dims = x.dims, .sharding = {}});
  results.push_back({.dtype = gamma.dtype, .dims = gamma.dims, .sharding = {}});
  return absl::OkStatus();
}

ShardingRule RmsNormGradSharding(const OpTypes& op, const TypeList&) {
  const size_t rank = op.operands[0]->dims.size(), rows = op.operands[2]->dims.size();
  const ShardingRule::Factors x = RowFactors(rank, rows), gamma = GammaFactors(op, x);
  return {.operands = {x, gamma, RowFactors(rows, rows), x}, .results = {x, gamma}};
}

// With n = x rstd: dgamma = sum of dy n, dx = rstd (dy gamma - n mean(dy gamma n)).
absl::Status EvaluateRmsNormGrad(Evaluation& e) {
  const std::vector<double>&x = e.operand(0).floats(), &gamma = e.operand(1).floats();
  const std::vector<double>&rstd = e.operand(2).floats(), &dy = e.operand(3).floats();
  std::vector<double>&dx = e.results[0].floats(), &dgamma = e.results[1].floats();
  const size_t n = LengthOfRows(x, rstd), own = gamma.size();
  for (size_t row = 0; row < rstd.size(); ++row) {
    double mean = 0;
    for (size_t at = row * n; at < (row + 1) * n; ++at) {
      dgamma[at % own] += dy[at] * x[at] * rstd[row];
      mean += dy[at] * gamma[at % own] * x[at] * rstd[row] / static_cast<double>(n);
    }
    for (size_t at = row * n; at < (row + 1) * n; ++at) {
      dx[at] = rstd[row] * (dy[at] * gamma[at % own] - x[at] * rstd[row] * mean);
    }
  }
  return absl::OkStatus();
}

}  // namespace
}  // namespace rms_norm_cc

extern const OpInfo kRmsNormOp = {
    .name = "RmsNorm",
    .summary =
        "x over the root of its mean square from dimension `axis` on, times gamma; and the "
        "reciprocal root",
    .operands = 2,
    .results = 2,
    .infer = rms_norm_cc::InferRmsNorm,
    .flops = rms_norm_cc::NormFlops<4>,
    .sharding = rms_norm_cc::RmsNormSharding,
    .evaluate = rms_norm_cc::EvaluateRmsNorm,
    .gradient = rms_norm_cc::RmsNormGradient,
};

extern const OpInfo kRmsNormGradOp = {
    .name = "RmsNormGrad",
    .summary = "gradients of RmsNorm from x, gamma, rstd and dy: of x, of gamma",
    .operands = 4,
    .results = 2,
    .infer = rms_norm_cc::InferRmsNormGrad,
    .flops = rms_norm_cc::NormFlops<8>,
    .sharding = rms_norm_cc::RmsNormGradSharding,
    .evaluate = rms_norm_cc::EvaluateRmsNormGrad,
};

}  // namespace orrery::ir
