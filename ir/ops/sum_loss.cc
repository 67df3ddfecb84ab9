#include "ir/ops/kernels.h"

// The loss that is the output itself: training systems are often measured with `y.sum()`.

namespace orrery::ir {
namespace {

absl::Status SumLossGradient(GradientContext& c) {
  c.SetOperandGradient(0, c.builder().Op(OpKind::kSumLossGrad, {c.operand(0)}, c.GradientName(0)));
  return c.builder().status();
}

absl::Status EvaluateOnes(Evaluation& e) {
  return EvaluateUnary(e, [](double) { return 1.0; });
}

}  // namespace

extern const OpInfo kSumLossOp = {
    .name = "SumLoss",
    .summary = "x, each element of which is a part of the loss",
    .operands = 1,
    .infer = InferUnary,
    .sharding = ElementwiseRule,
    .evaluate = [](Evaluation& e) { return EvaluateUnary(e, [](double x) { return x; }); },
    .gradient = SumLossGradient,
    .in_place_from = 0,
    .is_loss = true,
};

// Only the shape of x matters.
extern const OpInfo kSumLossGradOp = {
    .name = "SumLossGrad",
    .summary = "gradient of SumLoss(x): ones",
    .operands = 1,
    .infer = InferUnary,
    .sharding = ElementwiseRule,
    .evaluate = EvaluateOnes,
    .seeds_backward = true,
};

}  // namespace orrery::ir
