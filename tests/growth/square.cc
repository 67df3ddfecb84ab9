#include "ir/builder.h"
#include "ir/op_info.h"
#include "ir/op_kind.h"
#include "ir/tensor.h"

namespace orrery::ir {
namespace square_cc {
namespace {

absl::Status Infer(const OpTypes& op, TypeList& results) {
  results.push_back({.dtype = op.operands[0]->dtype, .dims = op.operands[0]->dims, .sharding = {}});
  return absl::OkStatus();
}

double CountFlops(const OpTypes&, const TypeList& results) {
  return static_cast<double>(ElementCount(results[0].dims));
}

// On tensors: for folding, and for the reference executor that checks gradients and shardings.
absl::Status Compute(Evaluation& e) {
  const Tensor& x = e.operand(0);
  for (int64_t i = 0; i < x.size(); ++i) e.results[0].SetNumber(i, x.Number(i) * x.Number(i));
  return absl::OkStatus();
}

// d(x²) = 2 x dy. What a rule reads of forward, x here, is what memory keeps for backward.
absl::Status Gradient(GradientContext& c) {
  const ValueId product = c.builder().Op(OpKind::kMul, {c.operand(0), c.result_gradient()});
  c.SetOperandGradient(
      0, c.builder().Op(OpKind::kScale, {product}, c.GradientName(0), {{"factor", 2.0}}));
  return c.builder().status();
}

}  // namespace
}  // namespace square_cc

extern const OpInfo kSquareOp = {
    .name = "Square",
    .summary = "x times x",
    .operands = 1,
    .infer = square_cc::Infer,
    .flops = square_cc::CountFlops,
    .sharding = ElementwiseRule,
    .evaluate = square_cc::Compute,
    .gradient = square_cc::Gradient,
};

}  // namespace orrery::ir
