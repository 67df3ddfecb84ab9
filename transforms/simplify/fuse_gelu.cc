#include <cmath>

#include "ir/op_kind.h"
#include "transforms/pass/pass.h"
#include "transforms/simplify/match.h"

// Gelu written out: x/2 (1 + erf(x/√2)), with a tanh instead of the error function, or as
// x sigmoid(1.702 x).

namespace orrery::transforms {
namespace fuse_gelu_cc {
namespace {

using ir::OpId;
using ir::OpKind;
using ir::ValueId;

// What stands beside the number 1 in the sum `value`; invalid when it is none.
ValueId BesideOne(const Rewriter& r, ValueId value) {
  const OpId add = r.MadeOnlyFor(value, OpKind::kAdd);
  const auto match = add.valid() ? MatchNumber(r, add) : std::nullopt;
  return match.has_value() && match->number == 1 ? match->value : ValueId();
}

bool IsPower(const Product& product, ValueId x, size_t exponent, double scale) {
  if (product.factors.size() != exponent || !IsNear(product.scale, scale)) return false;
  for (const ValueId factor : product.factors) {
    if (factor != x) return false;
  }
  return true;
}

// √(2/π) (x + 0.044715 x³), or √(2/π) x (1 + 0.044715 x²).
bool IsInsideTanh(const Rewriter& r, ValueId value, ValueId x) {
  constexpr double kCubic = 0.044715;
  const Product product = TakeApart(r, value);
  if (!IsNear(product.scale, std::sqrt(2 / M_PI))) return false;
  if (product.factors.size() == 1) {
    const OpId add = r.MadeOnlyFor(product.factors[0], OpKind::kAdd);
    const ValueId cube = add.valid() ? OtherOperand(r, add, x) : ValueId();
    return cube.valid() && IsPower(TakeApart(r, cube), x, 3, kCubic);
  }
  if (product.factors.size() != 2) return false;
  const size_t i = product.factors[0] == x ? 0 : 1;
  if (product.factors[i] != x) return false;
  const ValueId square = BesideOne(r, product.factors[1 - i]);
  return square.valid() && IsPower(TakeApart(r, square), x, 2, kCubic);
}

// What a product of x with 1 + `value` is; null when it is no Gelu.
const char* ApproximationOf(const Rewriter& r, ValueId value, ValueId x) {
  if (const OpId erf = r.MadeOnlyFor(value, OpKind::kErf); erf.valid()) {
    return IsPower(TakeApart(r, r.operand(erf, 0)), x, 1, M_SQRT1_2) ? "none" : nullptr;
  }
  const OpId tanh = r.MadeOnlyFor(value, OpKind::kTanh);
  return tanh.valid() && IsInsideTanh(r, r.operand(tanh, 0), x) ? "tanh" : nullptr;
}

// x sigmoid(1.702 x).
bool FuseSigmoid(Rewriter& r, OpId op) {
  constexpr double kFactor = 1.702;
  for (size_t i = 0; i < 2; ++i) {
    const ValueId x = r.operand(op, i);
    const OpId sigmoid = r.MadeOnlyFor(r.operand(op, 1 - i), OpKind::kSigmoid);
    if (!sigmoid.valid() || !IsPower(TakeApart(r, r.operand(sigmoid, 0)), x, 1, kFactor)) continue;
    const ir::AttributeSet set = {{"approximate", std::string("sigmoid")}};
    r.Replace(r.result(op), r.Op(OpKind::kGelu, {x}, set));
    return true;
  }
  return false;
}

void FuseGelu(Rewriter& r, OpId op) {
  const OpKind kind = r.kind(op);
  if (kind == OpKind::kMul && FuseSigmoid(r, op)) return;
  if (kind != OpKind::kMul && kind != OpKind::kScale && kind != OpKind::kDiv) return;
  const Product product = TakeApart(r, op);
  if (product.factors.size() != 2 || product.scale != 0.5) return;
  for (size_t i = 0; i < 2; ++i) {
    const ValueId x = product.factors[i], inside = BesideOne(r, product.factors[1 - i]);
    const char* approximation = inside.valid() ? ApproximationOf(r, inside, x) : nullptr;
    if (approximation == nullptr) continue;
    if (r.function().type_id(x) != r.function().type_id(r.result(op))) return;
    const ir::AttributeSet set = {{"approximate", std::string(approximation)}};
    return r.Replace(r.result(op), r.Op(OpKind::kGelu, {x}, set));
  }
}

}  // namespace
}  // namespace fuse_gelu_cc

extern const PassInfo kFuseGeluPass = {
    .name = "fuse-gelu",
    .summary = "makes one Gelu of the error function or the tanh that stands for it",
    .options = "",
    .run = [](ir::Function& function,
              const PassOptions&) { return Rewrite(function, fuse_gelu_cc::FuseGelu); },
    .idempotent = true,
};

}  // namespace orrery::transforms
