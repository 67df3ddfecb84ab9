#include "ir/op_kind.h"
#include "transforms/pass/pass.h"
#include "transforms/simplify/match.h"

// What follows a convolution or its batch norm and is done before the result is written: the bias,
// another branch that is added, and Relu, cut off at 6 or not.

namespace orrery::transforms {
namespace fuse_convolution_cc {
namespace {

using ir::AttributeSet;
using ir::OpId;
using ir::OpKind;
using ir::ValueId;

// The op of that kind that makes `value` for the op in hand alone, yet without activation. Its
// other results, statistics, may be returned, but no op may need them earlier.
OpId Open(const Rewriter& r, ValueId value, OpKind kind) {
  const OpId op = r.MadeOnlyFor(value, kind);
  if (!op.valid() || r.is_returned(value)) return OpId();
  if (r.attributes(op).Find("activation") != nullptr) return OpId();
  for (int32_t i = 1; i < r.function().result_count(op); ++i) {
    const ValueId other = r.result(op, i);
    if (r.uses(other) > (r.is_returned(other) ? 1 : 0)) return OpId();
  }
  return op;
}

// `op` instead of `old`, whose first result stood in the way of that of `last`.
void ReplaceBoth(Rewriter& r, OpId last, OpId old, OpId op) {
  if (!op.valid()) return;
  for (int32_t i = 1; i < r.function().result_count(old); ++i) {
    if (r.uses(r.result(old, i)) > 0) r.Replace(r.result(old, i), r.result(op, i));
  }
  r.Replace(r.result(last), r.result(op));
}

bool AddBranch(Rewriter& r, OpId op) {
  for (size_t i = 0; i < 2; ++i) {
    const OpId norm = Open(r, r.operand(op, i), OpKind::kBatchNorm);
    const ValueId branch = r.operand(op, 1 - i);
    if (!norm.valid() || r.operand_count(norm) != 5) continue;
    if (r.function().type_id(branch) != r.function().type_id(r.result(norm))) continue;
    const auto old = r.function().operands(norm);
    std::vector<ValueId> operands(old.begin(), old.end());
    operands.push_back(branch);
    ReplaceBoth(r, op, norm, r.Ops(OpKind::kBatchNorm, operands, r.attributes(norm)));
    return true;
  }
  return false;
}

void AddBias(Rewriter& r, OpId op) {
  for (size_t i = 0; i < 2; ++i) {
    const OpId conv = Open(r, r.operand(op, i), OpKind::kConv);
    const ValueId bias = r.operand(op, 1 - i);
    if (!conv.valid() || r.operand_count(conv) != 2) continue;
    const ir::Dims& maps = r.dims(r.result(conv));
    if (r.dims(r.result(op)) != maps || !IsByChannels(r, bias, maps)) continue;
    const AttributeSet shape = {{"shape", std::vector<int64_t>{maps[1]}}};
    const ValueId operands[] = {r.operand(conv, 0), r.operand(conv, 1),
                                r.Op(OpKind::kReshape, {bias}, shape)};
    if (!r.builder().status().ok()) return;
    return ReplaceBoth(r, op, conv, r.Ops(OpKind::kConv, operands, r.attributes(conv)));
  }
}

void AddActivation(Rewriter& r, OpId op, const char* activation) {
  for (const OpKind kind : {OpKind::kConv, OpKind::kBatchNorm}) {
    const OpId inner = Open(r, r.operand(op, 0), kind);
    if (!inner.valid()) continue;
    AttributeSet attributes = r.attributes(inner);
    attributes.Set("activation", std::string(activation));
    const auto old = r.function().operands(inner);
    return ReplaceBoth(r, op, inner, r.Ops(kind, old, attributes));
  }
}

bool IsRelu6(const AttributeSet& clip) {
  return clip.Number("min", -1) == 0 && clip.Number("max", 0) == 6;
}

void FuseConvolution(Rewriter& r, OpId op) {
  if (r.kind(op) == OpKind::kRelu) AddActivation(r, op, "relu");
  if (r.kind(op) == OpKind::kClip && IsRelu6(r.attributes(op))) AddActivation(r, op, "relu6");
  if (r.kind(op) == OpKind::kAdd && !AddBranch(r, op)) AddBias(r, op);
}

}  // namespace
}  // namespace fuse_convolution_cc

extern const PassInfo kFuseConvolutionPass = {
    .name = "fuse-convolution",
    .summary = "lets convolutions add their bias, batch norms another branch, and both do Relu",
    .options = "",
    .run =
        [](ir::Function& function, const PassOptions&) {
          return Rewrite(function, fuse_convolution_cc::FuseConvolution);
        },
    .idempotent = true,
};

}  // namespace orrery::transforms
