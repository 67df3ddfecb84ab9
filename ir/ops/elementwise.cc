#include <functional>

#include "ir/op_info.h"
#include "ir/op_kind.h"
#include "ir/ops/pointwise.h"

// Ops that compute one result element from the operand elements at the same position.

namespace orrery::ir {
namespace elementwise_cc {
namespace {

absl::Status AddGradient(GradientContext& c) {
  for (int i = 0; i < 2; ++i) {
    if (!c.needs(i)) continue;
    c.SetOperandGradient(i, Unbroadcast(c, c.result_gradient(), i));
  }
  return c.builder().status();
}

absl::Status MulGradient(GradientContext& c) {
  for (int i = 0; i < 2; ++i) {
    if (!c.needs(i)) continue;
    const ValueId full = c.builder().Op(OpKind::kMul, {c.result_gradient(), c.operand(1 - i)});
    c.SetOperandGradient(i, Unbroadcast(c, full, i));
  }
  return c.builder().status();
}

absl::Status ScaleGradient(GradientContext& c) {
  c.SetOperandGradient(
      0, c.builder().Op(OpKind::kScale, {c.result_gradient()}, c.GradientName(0), c.attributes()));
  return c.builder().status();
}

// The result is positive where the operand is, and is often kept for the next op anyway.
absl::Status ReluGradient(GradientContext& c) {
  c.SetOperandGradient(0, c.builder().ReluGrad(c.result(), c.result_gradient(), c.GradientName(0)));
  return c.builder().status();
}

absl::Status EvaluateScale(Evaluation& e) {
  const double factor = e.attributes.Number("factor", 1);
  return EvaluateUnary(e, [factor](double x) { return factor * x; });
}

}  // namespace
}  // namespace elementwise_cc

extern const OpInfo kAddOp = {
    .name = "Add",
    .summary = "x + y, with broadcasting",
    .operands = 2,
    .infer = InferBroadcast,
    .flops = OneFlopAnElement,
    .sharding = ElementwiseRule,
    .evaluate =
        [](Evaluation& e) {
          return EvaluateTyped(e, [](auto x, auto z) { return Wrapping(x, z, std::plus<>()); });
        },
    .gradient = elementwise_cc::AddGradient,
    .linear = true,
};

extern const OpInfo kMulOp = {
    .name = "Mul",
    .summary = "x times y, with broadcasting",
    .operands = 2,
    .infer = InferBroadcast,
    .flops = OneFlopAnElement,
    .sharding = ElementwiseRule,
    .evaluate =
        [](Evaluation& e) {
          return EvaluateTyped(e,
                               [](auto x, auto z) { return Wrapping(x, z, std::multiplies<>()); });
        },
    .gradient = elementwise_cc::MulGradient,
};

extern const OpInfo kScaleOp = {
    .name = "Scale",
    .summary = "x times the number `factor`",
    .operands = 1,
    .infer = InferUnary,
    .flops = OneFlopAnElement,
    .sharding = ElementwiseRule,
    .evaluate = elementwise_cc::EvaluateScale,
    .gradient = elementwise_cc::ScaleGradient,
    .linear = true,
};

extern const OpInfo kReluOp = {
    .name = "Relu",
    .summary = "max(x, 0)",
    .operands = 1,
    .infer = InferUnary,
    .flops = OneFlopAnElement,
    .sharding = ElementwiseRule,
    .evaluate =
        [](Evaluation& e) { return EvaluateUnary(e, [](double x) { return x > 0 ? x : 0.0; }); },
    .gradient = elementwise_cc::ReluGradient,
};

extern const OpInfo kReluGradOp = {
    .name = "ReluGrad",
    .summary = "gradient of Relu(x) from that of its result: dy where x > 0, else 0",
    .operands = 2,
    .infer = InferSameShapes,
    .flops = OneFlopAnElement,
    .sharding = ElementwiseRule,
    .evaluate =
        [](Evaluation& e) {
          return EvaluateBinary(e, [](double x, double dy) { return x > 0 ? dy : 0.0; });
        },
};

}  // namespace orrery::ir
