#include "transforms/match.h"
#include "transforms/pass.h"

// The chain of means, differences and roots that exporters write for a layer norm: one LayerNorm.
// First without gain and bias, which the next ops of the chain then bring.

namespace orrery::transforms {
namespace {

using ir::AttributeSet;
using ir::OpId;
using ir::OpKind;
using ir::ValueId;

// (x - mean) / sqrt(mean of its square + epsilon).
bool FuseChain(Rewriter& r, OpId op) {
  const auto match = MatchNormalized(r, op);
  if (!match.has_value()) return false;
  const auto square = MatchMeanSquare(r, match->square);
  if (!square.has_value() || square->value != match->value) return false;
  const OpId centered = r.MadeBy(match->value, OpKind::kSub);
  if (!centered.valid()) return false;
  const ValueId x = r.operand(centered, 0);
  const auto mean = MatchMean(r, r.operand(centered, 1));
  if (!mean.has_value() || mean->value != x || mean->axis != square->axis) return false;
  // Its square is either one op that reads it once or twice, or none but the quotient reads it.
  if (r.uses(match->value) > 3) return false;
  const ir::TensorType ones = {
      .dtype = r.type(x).dtype, .dims = DimsFrom(r.dims(x), mean->axis), .sharding = {}};
  const AttributeSet attributes = {{"axis", static_cast<int64_t>(mean->axis)},
                                   {"epsilon", match->epsilon}};
  const ValueId operands[] = {x, r.Filled(ones, 1)};
  const OpId norm = r.Ops(OpKind::kLayerNorm, operands, attributes);
  if (norm.valid()) r.Replace(r.result(op), r.result(norm));
  return true;
}

// The norm that `value` is, with so many operands; its gain must be 1 when it has no bias.
OpId Norm(const Rewriter& r, ValueId value, bool plain) {
  const OpId norm = r.MadeOnlyFor(value, OpKind::kLayerNorm);
  if (!norm.valid() || r.operand_count(norm) != 2) return OpId();
  return !plain || r.Number(r.operand(norm, 1)) == 1 ? norm : OpId();
}

// A gain or bias after the norm, of the dims that it normalizes.
void FuseNext(Rewriter& r, OpId op, bool gain) {
  for (size_t i = 0; i < 2; ++i) {
    const ValueId next = r.operand(op, 1 - i);
    const OpId norm = Norm(r, r.operand(op, i), gain);
    if (!norm.valid() || r.dims(next) != r.dims(r.operand(norm, 1))) continue;
    std::vector<ValueId> operands = {r.operand(norm, 0), gain ? next : r.operand(norm, 1)};
    if (!gain) operands.push_back(next);
    const OpId fused = r.Ops(OpKind::kLayerNorm, operands, r.attributes(norm));
    if (fused.valid()) r.Replace(r.result(op), r.result(fused));
    return;
  }
}

void FuseLayerNorm(Rewriter& r, OpId op) {
  const OpKind kind = r.kind(op);
  if (kind != OpKind::kDiv && kind != OpKind::kMul && kind != OpKind::kAdd) return;
  if (kind != OpKind::kAdd && FuseChain(r, op)) return;
  if (kind != OpKind::kDiv) FuseNext(r, op, kind == OpKind::kMul);
}

}  // namespace

extern const PassInfo kFuseLayerNormPass = {
    .name = "fuse-layer-norm",
    .summary = "makes one LayerNorm of the means, differences and roots that stand for it",
    .options = "",
    .run = [](ir::Function& function,
              const PassOptions&) { return Rewrite(function, FuseLayerNorm); },
    .idempotent = true,
};

}  // namespace orrery::transforms
