#include <cmath>

#include "ir/op_info.h"
#include "ir/op_kind.h"
#include "ir/ops/pointwise.h"
#include "support/status.h"

// Powers, and the kernel of their gradient.

namespace orrery::ir {
namespace pow_cc {
namespace {

// Whole powers of whole numbers wrap; negative ones are cut towards zero.
int64_t WholePower(int64_t x, int64_t exponent) {
  if (exponent < 0) return x == 1 ? 1 : x == -1 ? (exponent % 2 == 0 ? 1 : -1) : 0;
  uint64_t power = 1, square = static_cast<uint64_t>(x);
  for (auto rest = static_cast<uint64_t>(exponent); rest != 0; rest /= 2) {
    if (rest % 2 == 1) power *= square;
    square *= square;
  }
  return static_cast<int64_t>(power);
}

absl::Status EvaluatePow(Evaluation& e) {
  const Tensor &x = e.operand(0), &exponent = e.operand(1);
  if (x.is_float() || exponent.is_float()) {
    return EvaluateBinary(e, [](double base, double p) { return std::pow(base, p); });
  }
  Tensor& y = e.results[0];
  for (Odometer at(y.dims(), {BroadcastStrides(x.dims(), y.dims()),
                              BroadcastStrides(exponent.dims(), y.dims())});
       !at.done(); at.Next()) {
    SetElement(y, at.index(),
               WholePower(ElementOf<int64_t>(x, at.offset(0)),
                          ElementOf<int64_t>(exponent, at.offset(1))));
  }
  return absl::OkStatus();
}

// The exponent may be of another type than x, which gives its type to the result.
absl::Status InferPow(const OpTypes& op, TypeList& results) {
  ORRERY_RETURN_IF_ERROR(WantNumbers(op));
  TensorType exponent = *op.operands[1];
  exponent.dtype = op.operands[0]->dtype;
  const TensorType* const alike[] = {op.operands[0], &exponent};
  return InferBroadcast({.attributes = op.attributes, .operands = alike, .mesh = op.mesh}, results);
}

// d(x^p) = p x^(p-1) dx + x^p log(x) dp.
absl::Status PowGradient(GradientContext& c) {
  Builder& b = c.builder();
  const ValueId x = c.operand(0), p = c.operand(1), dy = c.result_gradient();
  if (c.needs(0)) SetBroadcastGradient(c, 0, b.Op(OpKind::kPowGrad, {x, p, dy}));
  if (!c.needs(1)) return b.status();
  const ValueId slope = b.Op(OpKind::kMul, {c.result(), b.Op(OpKind::kLog, {x})});
  ValueId dp = b.Op(OpKind::kMul, {dy, slope});
  const DType wanted = c.operand_type(1).dtype;
  if (wanted != c.operand_type(0).dtype) {
    dp = b.Op(OpKind::kCast, {dp}, "", {{"to", std::string(ToString(wanted))}});
  }
  SetBroadcastGradient(c, 1, dp);
  return b.status();
}

absl::Status EvaluatePowGrad(Evaluation& e) {
  const Tensor &x = e.operand(0), &p = e.operand(1), &dy = e.operand(2);
  Tensor& dx = e.results[0];
  for (Odometer at(dx.dims(),
                   {BroadcastStrides(x.dims(), dx.dims()), BroadcastStrides(p.dims(), dx.dims())});
       !at.done(); at.Next()) {
    const double exponent = p.Number(at.offset(1));
    const double power = std::pow(x.Number(at.offset(0)), exponent - 1);
    const double slope = exponent == 0 ? 0 : exponent * power;
    dx.SetNumber(at.index(), slope * dy.Number(at.index()));
  }
  return absl::OkStatus();
}

}  // namespace
}  // namespace pow_cc

extern const OpInfo kPowOp = {
    .name = "Pow",
    .summary = "x to the power y, with broadcasting; of the type of x",
    .operands = 2,
    .infer = pow_cc::InferPow,
    .flops = FlopsAnElement<kExpFlops>,
    .sharding = ElementwiseRule,
    .evaluate = pow_cc::EvaluatePow,
    .gradient = pow_cc::PowGradient,
};

extern const OpInfo kPowGradOp = {
    .name = "PowGrad",
    .summary = "gradient of x in x to the power p, from that of the result: p x^(p-1) dy",
    .operands = 3,
    .infer = InferBroadcastGrad,
    .flops = FlopsAnElement<kExpFlops + 3>,
    .sharding = ElementwiseRule,
    .evaluate = pow_cc::EvaluatePowGrad,
};

}  // namespace orrery::ir
