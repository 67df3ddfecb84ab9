#include "ir/ops/normalization.h"

#include <string>

#include "ir/op_info.h"
#include "ir/ops/checks.h"
#include "support/status.h"

namespace orrery::ir {

void AddNormResults(const TensorType& x, const Dims& statistics, TypeList& results) {
  AddResult(results, x.dtype, x.dims);
  for (int i = 0; i < 2; ++i) AddResult(results, StatisticsType(x.dtype), statistics);
}

absl::Status InferNormGrad(const OpTypes& op, const Dims& statistics, TypeList& results) {
  const TensorType &x = *op.operands[0], &scale = *op.operands[1];
  ORRERY_RETURN_IF_ERROR(CheckDims(op, 2, statistics, "(the means)"));
  ORRERY_RETURN_IF_ERROR(CheckDims(op, 3, statistics, "(the deviations)"));
  ORRERY_RETURN_IF_ERROR(CheckDims(op, 4, x.dims, "as x"));
  AddResult(results, x.dtype, x.dims);
  for (int i = 0; i < 2; ++i) AddResult(results, scale.dtype, scale.dims);
  return absl::OkStatus();
}

absl::Status NormGradient(GradientContext& c, OpKind grad, const AttributeSet& attributes) {
  if (!c.result_gradient(0).valid() || c.result_gradient(1).valid() ||
      c.result_gradient(2).valid()) {
    return absl::UnimplementedError("no gradient of the statistics, only of the normalized values");
  }
  const ValueId operands[] = {c.operand(0), c.operand(1), c.result(1), c.result(2),
                              c.result_gradient(0)};
  const std::string dx = c.GradientName(0), dscale = c.GradientName(1);
  const std::string dbias = c.operand_count() > 2 ? c.GradientName(2) : "";
  const absl::string_view names[] = {dx, dscale, dbias};
  const OpId op = c.builder().Ops(grad, operands, names, attributes);
  if (!op.valid()) return c.builder().status();
  for (int i = 0; i < c.operand_count(); ++i) {
    c.SetOperandGradient(i, c.builder().function().result(op, i));
  }
  return absl::OkStatus();
}

Moments MomentsOf(const Tensor& x, const NormRun& run, double epsilon) {
  const auto n = static_cast<double>(run.size);
  double mean = 0, variance = 0;
  for (int64_t i = 0; i < run.size; ++i) mean += x.Number(run.start() + i) / n;
  for (int64_t i = 0; i < run.size; ++i) {
    const double centered = x.Number(run.start() + i) - mean;
    variance += centered * centered / n;
  }
  return {.mean = mean, .rstd = 1 / std::sqrt(variance + epsilon)};
}

}  // namespace orrery::ir
