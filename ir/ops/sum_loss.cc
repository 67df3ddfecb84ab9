#include "absl/strings/str_cat.h"
#include "ir/op_info.h"
#include "ir/op_kind.h"
#include "ir/ops/kernels.h"

// The loss that is the output itself: training systems are often measured with `y.sum()`. With
// `batch`, a number of elements over all microbatches, it is their mean.

namespace orrery::ir {
namespace sum_loss_cc {
namespace {

absl::Status InferSumLoss(const OpTypes& op, TypeList& results) {
  if (op.attributes.Int("batch", 1) >= 1) return InferUnary(op, results);
  return absl::InvalidArgumentError(
      absl::StrCat("batch=", op.attributes.Int("batch", 1), "; wanted at least 1"));
}

absl::Status SumLossGradient(GradientContext& c) {
  c.SetOperandGradient(
      0, c.builder().Op(OpKind::kSumLossGrad, {c.operand(0)}, c.GradientName(0), c.attributes()));
  return c.builder().status();
}

double ShareOf(const Evaluation& e) { return 1 / e.attributes.Number("batch", 1); }

absl::Status EvaluateSumLoss(Evaluation& e) {
  return EvaluateUnary(e, [share = ShareOf(e)](double x) { return share * x; });
}

absl::Status EvaluateSumLossGrad(Evaluation& e) {
  return EvaluateUnary(e, [share = ShareOf(e)](double) { return share; });
}

}  // namespace
}  // namespace sum_loss_cc

extern const OpInfo kSumLossOp = {
    .name = "SumLoss",
    .summary = "x, or x / `batch`, each element of which is a part of the loss",
    .operands = 1,
    .infer = sum_loss_cc::InferSumLoss,
    .sharding = ElementwiseRule,
    .evaluate = sum_loss_cc::EvaluateSumLoss,
    .gradient = sum_loss_cc::SumLossGradient,
    .in_place_from = 0,
    .is_loss = true,
};

// Only the shape of x matters.
extern const OpInfo kSumLossGradOp = {
    .name = "SumLossGrad",
    .summary = "gradient of SumLoss(x): ones, or 1 / `batch` each",
    .operands = 1,
    .infer = sum_loss_cc::InferSumLoss,
    .sharding = ElementwiseRule,
    .evaluate = sum_loss_cc::EvaluateSumLossGrad,
    .seeds_backward = true,
};

}  // namespace orrery::ir
