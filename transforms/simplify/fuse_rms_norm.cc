#include "ir/op_kind.h"
#include "transforms/pass/pass.h"
#include "transforms/simplify/match.h"

// x / sqrt(mean of its square + epsilon), times a gain: one RmsNorm. Exports of half precision
// widen x first and narrow the result: the kernel does so by itself.

namespace orrery::transforms {
namespace fuse_rms_norm_cc {
namespace {

using ir::OpId;
using ir::OpKind;
using ir::ValueId;

ValueId PlainNorm(Rewriter& r, ValueId x, const ir::AttributeSet& attributes) {
  const auto axis = static_cast<size_t>(attributes.Int("axis", 0));
  const ir::TensorType ones = {
      .dtype = r.type(x).dtype, .dims = DimsFrom(r.dims(x), axis), .sharding = {}};
  const ValueId operands[] = {x, r.Filled(ones, 1)};
  const OpId norm = r.Ops(OpKind::kRmsNorm, operands, attributes);
  return norm.valid() ? r.result(norm) : ValueId();
}

bool FuseChain(Rewriter& r, OpId op) {
  const auto match = MatchNormalized(r, op);
  if (!match.has_value()) return false;
  const auto square = MatchMeanSquare(r, match->square);
  if (!square.has_value() || square->value != match->value) return false;
  const ValueId norm = PlainNorm(
      r, match->value, {{"axis", static_cast<int64_t>(square->axis)}, {"epsilon", match->epsilon}});
  if (norm.valid()) r.Replace(r.result(op), norm);
  return true;
}

// The norm that `value` is, of gain 1.
OpId Norm(const Rewriter& r, ValueId value) {
  const OpId norm = r.MadeOnlyFor(value, OpKind::kRmsNorm);
  return norm.valid() && r.Number(r.operand(norm, 1)) == 1 ? norm : OpId();
}

void FuseGain(Rewriter& r, OpId op) {
  for (size_t i = 0; i < 2; ++i) {
    const ValueId gain = r.operand(op, 1 - i);
    const OpId norm = Norm(r, r.operand(op, i));
    if (!norm.valid() || r.dims(gain) != r.dims(r.operand(norm, 1))) continue;
    const ValueId operands[] = {r.operand(norm, 0), gain};
    const OpId fused = r.Ops(OpKind::kRmsNorm, operands, r.attributes(norm));
    if (fused.valid()) r.Replace(r.result(op), r.result(fused));
    return;
  }
}

// Narrowed to what it was before it was widened.
void FuseCast(Rewriter& r, OpId op) {
  const OpId norm = Norm(r, r.operand(op, 0));
  const OpId widen = norm.valid() ? r.MadeBy(r.operand(norm, 0), OpKind::kCast) : OpId();
  if (!widen.valid()) return;
  const ValueId x = r.operand(widen, 0);
  if (r.function().type_id(x) != r.function().type_id(r.result(op))) return;
  const ValueId narrow = PlainNorm(r, x, r.attributes(norm));
  if (narrow.valid()) r.Replace(r.result(op), narrow);
}

void FuseRmsNorm(Rewriter& r, OpId op) {
  const OpKind kind = r.kind(op);
  if (kind == OpKind::kCast) return FuseCast(r, op);
  if (kind != OpKind::kMul && kind != OpKind::kDiv) return;
  if (!FuseChain(r, op) && kind == OpKind::kMul) FuseGain(r, op);
}

}  // namespace
}  // namespace fuse_rms_norm_cc

extern const PassInfo kFuseRmsNormPass = {
    .name = "fuse-rms-norm",
    .summary = "makes one RmsNorm of the mean square and root that stand for it",
    .options = "",
    .run = [](ir::Function& function,
              const PassOptions&) { return Rewrite(function, fuse_rms_norm_cc::FuseRmsNorm); },
    .idempotent = true,
};

}  // namespace orrery::transforms
