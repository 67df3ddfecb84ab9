#include "ir/op_kind.h"
#include "transforms/pass/pass.h"
#include "transforms/simplify/match.h"

// x sigmoid(x) is Silu; Silu of one product times another one is SwiGlu.

namespace orrery::transforms {
namespace fuse_swiglu_cc {
namespace {

using ir::OpId;
using ir::OpKind;
using ir::ValueId;

bool SameType(const Rewriter& r, ValueId x, ValueId y) {
  return r.function().type_id(x) == r.function().type_id(y);
}

void FuseSilu(Rewriter& r, OpId op) {
  if (r.kind(op) != OpKind::kMul) return;
  for (size_t i = 0; i < 2; ++i) {
    const ValueId x = r.operand(op, i);
    const OpId sigmoid = r.MadeOnlyFor(r.operand(op, 1 - i), OpKind::kSigmoid);
    if (!sigmoid.valid() || r.operand(sigmoid, 0) != x) continue;
    return r.Replace(r.result(op), r.Op(OpKind::kSilu, {x}));
  }
}

void FuseSwiGlu(Rewriter& r, OpId op) {
  if (r.kind(op) != OpKind::kMul) return;
  for (size_t i = 0; i < 2; ++i) {
    const ValueId up = r.operand(op, i);
    const OpId silu = r.MadeOnlyFor(r.operand(op, 1 - i), OpKind::kSilu);
    if (!silu.valid() || !SameType(r, up, r.operand(silu, 0))) continue;
    return r.Replace(r.result(op), r.Op(OpKind::kSwiGlu, {r.operand(silu, 0), up}));
  }
}

}  // namespace
}  // namespace fuse_swiglu_cc

extern const PassInfo kFuseSiluPass = {
    .name = "fuse-silu",
    .summary = "makes one Silu of x sigmoid(x)",
    .options = "",
    .run = [](ir::Function& function,
              const PassOptions&) { return Rewrite(function, fuse_swiglu_cc::FuseSilu); },
    .idempotent = true,
};

extern const PassInfo kFuseSwiGluPass = {
    .name = "fuse-swiglu",
    .summary = "makes one SwiGlu of Silu(gate) times a value of the same type",
    .options = "",
    .run = [](ir::Function& function,
              const PassOptions&) { return Rewrite(function, fuse_swiglu_cc::FuseSwiGlu); },
    .idempotent = true,
};

}  // namespace orrery::transforms
