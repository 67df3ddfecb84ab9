#include "transforms/training/split_backward.h"

#include "ir/op_kind.h"
#include "transforms/pass/pass.h"
#include "transforms/pass/rewriter.h"

namespace orrery::transforms {
namespace split_backward_cc {
namespace {

using ir::AttributeSet;
using ir::OpId;
using ir::OpKind;
using ir::ValueId;

AttributeSet Flips(bool x, bool w) {
  AttributeSet flips;
  if (x) flips.Set("transpose_x", int64_t{1});
  if (w) flips.Set("transpose_w", int64_t{1});
  return flips;
}

bool Flag(const Rewriter& r, OpId op, absl::string_view name) {
  return r.attributes(op).Int(name, 0) != 0;
}

// Y = X' W', where ' is what the attributes ask for: dX' = dY W'^T and dW' = X'^T dY.
void SplitProduct(Rewriter& r, OpId op) {
  const ValueId x = r.operand(op, 0), w = r.operand(op, 1), dy = r.operand(op, 2);
  const bool flip_x = Flag(r, op, "transpose_x"), flip_w = Flag(r, op, "transpose_w");
  const ValueId dx = flip_x ? r.Op(OpKind::kMatMul, {w, dy}, Flips(flip_w, true))
                            : r.Op(OpKind::kMatMul, {dy, w}, Flips(false, !flip_w));
  r.Replace(r.result(op, 0), dx);
  r.Replace(r.result(op, 1), r.Op(OpKind::kMatMulWeightGrad, {x, dy}, r.attributes(op)));
}

// Products of one x with several weights, side by side: dX is the sum of theirs.
void SplitGroup(Rewriter& r, OpId op) {
  const auto count = static_cast<size_t>(r.attributes(op).Int("count", 0));
  const bool flip_w = Flag(r, op, "transpose_w");
  ValueId dx;
  for (size_t i = 1; i <= count; ++i) {
    const ValueId dy = r.operand(op, count + i);
    const ValueId part = r.Op(OpKind::kMatMul, {dy, r.operand(op, i)}, Flips(false, !flip_w));
    dx = i == 1 ? part : r.Op(OpKind::kAdd, {dx, part});
    r.Replace(r.result(op, static_cast<int32_t>(i)),
              r.Op(OpKind::kMatMulWeightGrad, {r.operand(op, 0), dy}, Flips(false, flip_w)));
  }
  r.Replace(r.result(op, 0), dx);
}

}  // namespace
}  // namespace split_backward_cc

absl::StatusOr<bool> SplitBackward(ir::Function& function) {
  return Rewrite(function, [](Rewriter& r, ir::OpId op) {
    if (r.kind(op) == ir::OpKind::kMatMulGrad) split_backward_cc::SplitProduct(r, op);
    if (r.kind(op) == ir::OpKind::kLinearGroupGrad) split_backward_cc::SplitGroup(r, op);
  });
}

extern const PassInfo kSplitBackwardPass = {
    .name = "split-backward",
    .summary = "parts ops that make gradients of an input and of weights at once",
    .options = "",
    .run = [](ir::Function& function, const PassOptions&) { return SplitBackward(function); },
    .idempotent = true,
};

}  // namespace orrery::transforms
