#include <optional>

#include "ir/op_kind.h"
#include "transforms/pass/pass.h"
#include "transforms/simplify/match.h"

// The chain of means, differences and roots that exporters write for a layer norm: one LayerNorm.
// First without gain and bias, which the next ops of the chain then bring. And a group norm, which
// PyTorch writes as instance norm of a view without gain and bias, and these behind it: one
// GroupNorm.

namespace orrery::transforms {
namespace fuse_layer_norm_cc {
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

// x factor + (bias - mean factor), as TensorFlow writes it.
struct Affine {
  ValueId x, mean, factor, bias;
};

std::optional<Affine> MatchAffine(const Rewriter& r, OpId add) {
  for (size_t i = 0; i < 2; ++i) {
    const OpId scaled = r.MadeOnlyFor(r.operand(add, i), OpKind::kMul),
               shift = r.MadeOnlyFor(r.operand(add, 1 - i), OpKind::kSub);
    const OpId mean = shift.valid() ? r.MadeOnlyFor(r.operand(shift, 1), OpKind::kMul) : OpId();
    if (!scaled.valid() || !mean.valid()) continue;
    for (size_t j = 0; j < 2; ++j) {
      const ValueId factor = r.operand(scaled, j), other = OtherOperand(r, mean, factor);
      if (!other.valid() || r.uses(factor) != 2) continue;
      return Affine{.x = r.operand(scaled, 1 - j),
                    .mean = other,
                    .factor = factor,
                    .bias = r.operand(shift, 0)};
    }
  }
  return std::nullopt;
}

// The factor 1 / sqrt(variance + epsilon), perhaps times a gain.
struct Factor {
  Normalized root;
  ValueId gain;
};

std::optional<Factor> MatchFactor(const Rewriter& r, ValueId factor) {
  if (const auto root = MatchReciprocalRoot(r, factor, 2); root.has_value()) {
    return Factor{.root = *root, .gain = {}};
  }
  const OpId product = r.MadeOnlyFor(factor, OpKind::kMul, 2);
  for (size_t i = 0; product.valid() && i < 2; ++i) {
    const auto root = MatchReciprocalRoot(r, r.operand(product, i), 1);
    if (root.has_value()) return Factor{.root = *root, .gain = r.operand(product, 1 - i)};
  }
  return std::nullopt;
}

bool FuseAffine(Rewriter& r, OpId op) {
  const auto affine = MatchAffine(r, op);
  const auto factor = affine.has_value() ? MatchFactor(r, affine->factor) : std::nullopt;
  if (!factor.has_value()) return false;
  const auto variance = MatchMeanSquare(r, factor->root.square);
  const OpId centered = variance.has_value() ? r.MadeBy(variance->value, OpKind::kSub) : OpId();
  if (!centered.valid() || r.uses(variance->value) > 2) return false;
  const auto mean = MatchMean(r, affine->mean, 2);
  const ValueId x = affine->x;
  if (!mean.has_value() || mean->value != x || mean->axis != variance->axis) return false;
  if (r.operand(centered, 0) != x || r.operand(centered, 1) != affine->mean) return false;
  const ir::TensorType ones = {
      .dtype = r.type(x).dtype, .dims = DimsFrom(r.dims(x), mean->axis), .sharding = {}};
  const bool has_gain = factor->gain.valid();
  if (has_gain && r.dims(factor->gain) != ones.dims) return false;
  if (r.dims(affine->bias) != ones.dims) return false;
  const ValueId operands[] = {x, has_gain ? factor->gain : r.Filled(ones, 1), affine->bias};
  const OpId norm =
      r.Ops(OpKind::kLayerNorm, operands,
            {{"axis", static_cast<int64_t>(mean->axis)}, {"epsilon", factor->root.epsilon}});
  if (norm.valid()) r.Replace(r.result(op), r.result(norm));
  return true;
}

// The group norm that `value` is or is a view of, used by nothing else, its statistics by nothing
// at all.
OpId GroupNormOf(const Rewriter& r, ValueId value) {
  const OpId view = r.MadeOnlyFor(value, OpKind::kReshape);
  const ValueId y = view.valid() ? r.operand(view, 0) : value;
  const OpId norm = r.MadeOnlyFor(y, OpKind::kGroupNorm);
  if (!norm.valid() || r.dims(y)[0] != r.dims(value)[0]) return OpId();
  return r.uses(r.result(norm, 1)) == 0 && r.uses(r.result(norm, 2)) == 0 ? norm : OpId();
}

// x of the norm in the dims of `value`, which its result is a view of.
ValueId AsViewed(Rewriter& r, OpId norm, ValueId value) {
  const ValueId x = r.operand(norm, 0);
  if (value == r.result(norm)) return x;
  const OpId before = r.MadeBy(x, OpKind::kReshape);
  if (before.valid() && r.dims(r.operand(before, 0)) == r.dims(value)) return r.operand(before, 0);
  return r.Op(OpKind::kReshape, {x}, r.attributes(r.producer(value)));
}

// A gain or bias by channels behind a group norm that has none.
void FuseChannels(Rewriter& r, OpId op, bool gain) {
  for (size_t i = 0; i < 2; ++i) {
    const ValueId value = r.operand(op, i), next = r.operand(op, 1 - i);
    const ir::Dims& dims = r.dims(value);
    if (r.dims(r.result(op)) != dims || dims.size() < 2 || !IsByChannels(r, next, dims)) continue;
    const OpId norm = GroupNormOf(r, value);
    if (!norm.valid() || r.Number(r.operand(norm, 2)) != 0) continue;
    if (gain && r.Number(r.operand(norm, 1)) != 1) continue;
    const ir::TensorType by_channel = {
        .dtype = r.type(value).dtype, .dims = {dims[1]}, .sharding = {}};
    const bool viewed = r.dims(r.operand(norm, 1)) != by_channel.dims;
    if (viewed && r.Number(r.operand(norm, 1)) != 1) continue;
    if (dims[1] % r.attributes(norm).Int("groups", 1) != 0) continue;
    const ValueId vector =
        r.Op(OpKind::kReshape, {next}, {{"shape", std::vector<int64_t>{dims[1]}}});
    const ValueId scale = gain ? vector : viewed ? r.Filled(by_channel, 1) : r.operand(norm, 1);
    const ValueId operands[] = {AsViewed(r, norm, value), scale,
                                gain ? r.Filled(by_channel, 0) : vector};
    if (!r.builder().status().ok()) return;
    const OpId fused = r.Ops(OpKind::kGroupNorm, operands, r.attributes(norm));
    if (fused.valid()) r.Replace(r.result(op), r.result(fused));
    return;
  }
}

void FuseLayerNorm(Rewriter& r, OpId op) {
  const OpKind kind = r.kind(op);
  if (kind != OpKind::kDiv && kind != OpKind::kMul && kind != OpKind::kAdd) return;
  if (kind == OpKind::kAdd ? FuseAffine(r, op) : FuseChain(r, op)) return;
  if (kind == OpKind::kDiv) return;
  FuseNext(r, op, kind == OpKind::kMul);
  if (r.is_alive(op)) FuseChannels(r, op, kind == OpKind::kMul);
}

}  // namespace
}  // namespace fuse_layer_norm_cc

extern const PassInfo kFuseLayerNormPass = {
    .name = "fuse-layer-norm",
    .summary =
        "makes one LayerNorm or GroupNorm of the means, differences, roots and gains that stand "
        "for it",
    .options = "",
    .run = [](ir::Function& function,
              const PassOptions&) { return Rewrite(function, fuse_layer_norm_cc::FuseLayerNorm); },
    .idempotent = true,
};

}  // namespace orrery::transforms
