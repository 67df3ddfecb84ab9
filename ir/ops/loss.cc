#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "ir/builder.h"
#include "ir/op_info.h"
#include "ir/ops/checks.h"
#include "ir/ops/kernels.h"
#include "support/status.h"

// Losses, one value an element: (prediction - target)^2 / batch. `batch` is the global batch, so
// that gradients of microbatches and of data-parallel replicas add up to the gradient of the whole.

namespace orrery::ir {
namespace loss_cc {
namespace {

absl::Status InferLoss(const OpTypes& op, TypeList& results) {
  ORRERY_RETURN_IF_ERROR(CheckTypeOfFirst(op, 1));
  const TensorType &prediction = *op.operands[0], &target = *op.operands[1];
  if (prediction.dims != target.dims) {
    return absl::InvalidArgumentError(absl::StrCat("prediction and target differ in shape; got [",
                                                   absl::StrJoin(prediction.dims, ","), "] and [",
                                                   absl::StrJoin(target.dims, ","), "]"));
  }
  if (op.attributes.Int("batch", 0) <= 0) {
    return absl::InvalidArgumentError(
        "the attribute batch is missing; wanted the global batch size");
  }
  results.push_back({.dtype = prediction.dtype, .dims = prediction.dims, .sharding = {}});
  return absl::OkStatus();
}

double LossFlops(const OpTypes&, const TypeList& results) {
  return static_cast<double>(ElementCount(results[0].dims));
}

// The seed of the backward phase: the gradient of the summed loss is 1, so nothing comes in.
absl::Status LossGradient(GradientContext& c) {
  const int64_t batch = c.attributes().Int("batch", 1);
  c.SetOperandGradient(0,
                       c.builder().LossGrad(c.operand(0), c.operand(1), batch, c.GradientName(0)));
  return c.builder().status();
}

}  // namespace
}  // namespace loss_cc

extern const OpInfo kLossOp = {
    .name = "Loss",
    .summary = "squared error of each element over the global `batch`",
    .operands = 2,
    .infer = loss_cc::InferLoss,
    .flops = loss_cc::LossFlops,
    .sharding = ElementwiseRule,
    .evaluate =
        [](Evaluation& e) {
          const double batch = e.attributes.Number("batch", 1);
          return EvaluateBinary(e,
                                [batch](double x, double z) { return (x - z) * (x - z) / batch; });
        },
    .gradient = loss_cc::LossGradient,
    .no_gradient = 0b10,
    .is_loss = true,
};

extern const OpInfo kLossGradOp = {
    .name = "LossGrad",
    .summary = "gradient of Loss(x, z) with respect to x: 2(x - z)/batch",
    .operands = 2,
    .infer = loss_cc::InferLoss,
    .flops = loss_cc::LossFlops,
    .sharding = ElementwiseRule,
    .evaluate =
        [](Evaluation& e) {
          const double batch = e.attributes.Number("batch", 1);
          return EvaluateBinary(e, [batch](double x, double z) { return 2 * (x - z) / batch; });
        },
    .seeds_backward = true,
};

}  // namespace orrery::ir
