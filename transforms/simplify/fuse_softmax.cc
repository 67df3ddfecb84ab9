#include "ir/op_kind.h"
#include "transforms/pass/pass.h"
#include "transforms/simplify/match_logits.h"

// The scale and the masks before a softmax: one MaskedSoftmax.

namespace orrery::transforms {
namespace fuse_softmax_cc {
namespace {

using ir::AttributeSet;
using ir::OpId;
using ir::OpKind;
using ir::ValueId;

void FuseSoftmax(Rewriter& r, OpId op) {
  if (r.kind(op) != OpKind::kSoftmax) return;
  const ValueId x = r.operand(op, 0);
  const int64_t axis = r.attributes(op).Int("axis", -1);
  if (axis + 1 != static_cast<int64_t>(r.rank(x)) && axis != -1) return;
  const Logits logits = MatchLogits(r, x, /*attention=*/false);
  if (logits.plain()) return;
  std::vector<ValueId> operands = {logits.x};
  if (const ValueId mask = MakeMask(r, logits); mask.valid()) operands.push_back(mask);
  AttributeSet attributes = {{"axis", axis}};
  if (logits.scale != 1) attributes.Set("scale", logits.scale);
  if (logits.causal) attributes.Set("causal", int64_t{1});
  r.Replace(r.result(op), r.Op(OpKind::kMaskedSoftmax, operands, attributes));
}

}  // namespace
}  // namespace fuse_softmax_cc

extern const PassInfo kFuseSoftmaxPass = {
    .name = "fuse-softmax",
    .summary = "makes one MaskedSoftmax of a softmax and the scale and masks before it",
    .options = "",
    .run = [](ir::Function& function,
              const PassOptions&) { return Rewrite(function, fuse_softmax_cc::FuseSoftmax); },
    .idempotent = true,
};

}  // namespace orrery::transforms
