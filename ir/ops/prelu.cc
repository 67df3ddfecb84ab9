#include <functional>

#include "ir/op_info.h"
#include "ir/op_kind.h"
#include "ir/ops/pointwise.h"
#include "support/status.h"

// PRelu, whose slope is learned (He et al. 2015), and the kernel of its gradients.

namespace orrery::ir {
namespace prelu_cc {
namespace {

absl::Status InferPRelu(const OpTypes& op, TypeList& results) {
  ORRERY_RETURN_IF_ERROR(InferArithmetic(op, results));
  if (results[0].dims == op.operands[0]->dims) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("the slope has shape ", Show(op.operands[1]->dims),
                                                 "; wanted one that broadcasts to ",
                                                 Show(op.operands[0]->dims)));
}

absl::Status PReluGradient(GradientContext& c) {
  const ValueId operands[] = {c.operand(0), c.operand(1), c.result_gradient()};
  const OpId op = c.builder().Ops(OpKind::kPReluGrad, operands);
  if (!op.valid()) return c.builder().status();
  for (int i = 0; i < 2; ++i) {
    if (c.needs(i)) SetBroadcastGradient(c, i, c.builder().function().result(op, i));
  }
  return c.builder().status();
}

absl::Status InferPReluGrad(const OpTypes& op, TypeList& results) {
  ORRERY_RETURN_IF_ERROR(InferBroadcastGrad(op, results));
  results.push_back(results[0]);
  return absl::OkStatus();
}

absl::Status EvaluatePReluGrad(Evaluation& e) {
  const Tensor &x = e.operand(0), &slope = e.operand(1), &dy = e.operand(2);
  for (Odometer at(x.dims(), {BroadcastStrides(slope.dims(), x.dims())}); !at.done(); at.Next()) {
    const double value = x.Number(at.index()), gradient = dy.Number(at.index());
    const double factor = value > 0 ? 1 : slope.Number(at.offset(0));
    e.results[0].SetNumber(at.index(), factor * gradient);
    e.results[1].SetNumber(at.index(), value > 0 ? 0 : value * gradient);
  }
  return absl::OkStatus();
}

}  // namespace
}  // namespace prelu_cc

extern const OpInfo kPReluOp = {
    .name = "PRelu",
    .summary = "x where x > 0, else x times a slope that broadcasts to x",
    .operands = 2,
    .infer = prelu_cc::InferPRelu,
    .flops = FlopsAnElement<2>,
    .sharding = ElementwiseRule,
    .evaluate =
        [](Evaluation& e) {
          return EvaluateTyped(e, [](auto x, auto slope) {
            return x > 0 ? x : Wrapping(x, slope, std::multiplies<>());
          });
        },
    .gradient = prelu_cc::PReluGradient,
};

extern const OpInfo kPReluGradOp = {
    .name = "PReluGrad",
    .summary =
        "gradients of PRelu(x, slope) from that of its result: of x, and of each element's "
        "slope, to be summed",
    .operands = 3,
    .results = 2,
    .infer = prelu_cc::InferPReluGrad,
    .flops = FlopsAnElement<4>,
    .sharding = ElementwiseRule,
    .evaluate = prelu_cc::EvaluatePReluGrad,
};

}  // namespace orrery::ir
