#include <cmath>
#include <functional>

#include "ir/op_info.h"
#include "ir/op_kind.h"
#include "ir/ops/pointwise.h"
#include "support/status.h"

// Arithmetic of two numbers, element by element, with broadcasting. Add and Mul: elementwise.cc.

namespace orrery::ir {
namespace binary_cc {
namespace {

absl::Status NegGradient(GradientContext& c) {
  c.SetOperandGradient(0, c.builder().Op(OpKind::kNeg, {c.result_gradient()}, c.GradientName(0)));
  return c.builder().status();
}

absl::Status EvaluateNeg(Evaluation& e) {
  if (e.operand(0).is_float()) return EvaluateUnary(e, std::negate<>());
  for (size_t i = 0; i < e.operand(0).ints().size(); ++i) {
    e.results[0].ints()[i] = static_cast<int64_t>(-static_cast<uint64_t>(e.operand(0).ints()[i]));
  }
  return absl::OkStatus();
}

absl::Status InferNeg(const OpTypes& op, TypeList& results) {
  ORRERY_RETURN_IF_ERROR(WantNumbers(op));
  return InferUnary(op, results);
}

absl::Status SubGradient(GradientContext& c) {
  if (c.needs(0)) SetBroadcastGradient(c, 0, c.result_gradient());
  if (c.needs(1)) {
    SetBroadcastGradient(c, 1, c.builder().Op(OpKind::kNeg, {c.result_gradient()}));
  }
  return c.builder().status();
}

// d(x / z) = dx / z - (x / z) dz / z: from z and the result.
absl::Status DivGradient(GradientContext& c) {
  Builder& b = c.builder();
  const ValueId dx = b.Op(OpKind::kDiv, {c.result_gradient(), c.operand(1)});
  if (c.needs(0)) SetBroadcastGradient(c, 0, dx);
  if (c.needs(1)) {
    SetBroadcastGradient(c, 1, b.Op(OpKind::kNeg, {b.Op(OpKind::kMul, {dx, c.result()})}));
  }
  return b.status();
}

// Quotients are cut towards zero; whole numbers over zero give zero.
template <typename T>
T Quotient(T x, T z) {
  if constexpr (std::is_same_v<T, double>) return x / z;
  if constexpr (!std::is_same_v<T, double>) {
    if (z == 0) return 0;
    if (std::is_signed_v<T> && z == static_cast<T>(-1)) return Wrapping(T{0}, x, std::minus<>());
    return static_cast<T>(x / z);
  }
}

// What is left of x after division by z: with the sign of x, as C has it, or with that of z.
template <typename T>
T Remainder(T x, T z, bool as_c) {
  T rest = 0;
  if constexpr (std::is_same_v<T, double>) {
    rest = std::fmod(x, z);
  } else if (z != 0 && !(std::is_signed_v<T> && z == static_cast<T>(-1))) {
    rest = x % z;
  }
  const bool flip = !as_c && rest != 0 && (rest < 0) != (z < 0);
  return flip ? rest + z : rest;
}

absl::Status EvaluateMod(Evaluation& e) {
  const bool as_c = e.attributes.Int("fmod", 0) != 0;
  return EvaluateTyped(e, [as_c](auto x, auto z) { return Remainder(x, z, as_c); });
}

// The gradient goes where the extreme is; x wins a tie.
absl::Status ExtremeGradient(GradientContext& c, OpKind chooses_x) {
  Builder& b = c.builder();
  const ValueId is_x = b.Op(chooses_x, {c.operand(0), c.operand(1)});
  const ValueId zero = ScalarConstant(b, c.operand_type(0).dtype, 0);
  if (c.needs(0)) {
    SetBroadcastGradient(c, 0, b.Op(OpKind::kWhere, {is_x, c.result_gradient(), zero}));
  }
  if (c.needs(1)) {
    SetBroadcastGradient(c, 1, b.Op(OpKind::kWhere, {is_x, zero, c.result_gradient()}));
  }
  return b.status();
}

// As numpy does: no number wins.
template <typename T>
T Lesser(T x, T z) {
  return x < z || x != x ? x : z;
}
template <typename T>
T Greater(T x, T z) {
  return x > z || x != x ? x : z;
}

}  // namespace
}  // namespace binary_cc

extern const OpInfo kNegOp = {
    .name = "Neg",
    .summary = "minus x",
    .operands = 1,
    .infer = binary_cc::InferNeg,
    .flops = OneFlopAnElement,
    .sharding = ElementwiseRule,
    .evaluate = binary_cc::EvaluateNeg,
    .gradient = binary_cc::NegGradient,
    .linear = true,
};

extern const OpInfo kSubOp = {
    .name = "Sub",
    .summary = "x - y, with broadcasting",
    .operands = 2,
    .infer = InferArithmetic,
    .flops = OneFlopAnElement,
    .sharding = ElementwiseRule,
    .evaluate =
        [](Evaluation& e) {
          return EvaluateTyped(e, [](auto x, auto z) { return Wrapping(x, z, std::minus<>()); });
        },
    .gradient = binary_cc::SubGradient,
    .linear = true,
};

extern const OpInfo kDivOp = {
    .name = "Div",
    .summary = "x / y, with broadcasting; cut towards zero for whole numbers",
    .operands = 2,
    .infer = InferArithmetic,
    .flops = OneFlopAnElement,
    .sharding = ElementwiseRule,
    .evaluate =
        [](Evaluation& e) {
          return EvaluateTyped(e, [](auto x, auto z) { return binary_cc::Quotient(x, z); });
        },
    .gradient = binary_cc::DivGradient,
};

extern const OpInfo kModOp = {
    .name = "Mod",
    .summary = "the rest of x / y, with the sign of y; with that of x for fmod=1",
    .operands = 2,
    .infer = InferArithmetic,
    .flops = OneFlopAnElement,
    .sharding = ElementwiseRule,
    .evaluate = binary_cc::EvaluateMod,
    .no_gradient = 3,
};

extern const OpInfo kMinOp = {
    .name = "Min",
    .summary = "the lesser of x and y, with broadcasting",
    .operands = 2,
    .infer = InferArithmetic,
    .flops = OneFlopAnElement,
    .sharding = ElementwiseRule,
    .evaluate =
        [](Evaluation& e) {
          return EvaluateTyped(e, [](auto x, auto z) { return binary_cc::Lesser(x, z); });
        },
    .gradient =
        [](GradientContext& c) { return binary_cc::ExtremeGradient(c, OpKind::kLessOrEqual); },
};

extern const OpInfo kMaxOp = {
    .name = "Max",
    .summary = "the greater of x and y, with broadcasting",
    .operands = 2,
    .infer = InferArithmetic,
    .flops = OneFlopAnElement,
    .sharding = ElementwiseRule,
    .evaluate =
        [](Evaluation& e) {
          return EvaluateTyped(e, [](auto x, auto z) { return binary_cc::Greater(x, z); });
        },
    .gradient =
        [](GradientContext& c) { return binary_cc::ExtremeGradient(c, OpKind::kGreaterOrEqual); },
};

}  // namespace orrery::ir
