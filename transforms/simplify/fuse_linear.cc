#include "ir/op_kind.h"
#include "transforms/pass/pass.h"
#include "transforms/simplify/match.h"

// A product with a matrix, the bias that is added to it and the activation after that: one Linear.

namespace orrery::transforms {
namespace fuse_linear_cc {
namespace {

using ir::AttributeSet;
using ir::OpId;
using ir::OpKind;
using ir::ValueId;

// The product that `value` is, if a Linear can stand for it.
OpId Product(const Rewriter& r, ValueId value) {
  const OpId op = r.MadeOnlyFor(value, OpKind::kMatMul);
  if (!op.valid() || r.rank(r.operand(op, 1)) != 2 || r.rank(r.operand(op, 0)) < 2) return OpId();
  return r.attributes(op).Int("transpose_x", 0) == 0 ? op : OpId();
}

// The Reshape that `value` is, if it leaves the columns of what it is made of as they are.
OpId ViewOfColumns(const Rewriter& r, ValueId value) {
  const OpId op = r.MadeOnlyFor(value, OpKind::kReshape);
  if (!op.valid() || r.rank(value) < 2 || r.rank(r.operand(op, 0)) < 2) return OpId();
  return r.dims(value).back() == r.dims(r.operand(op, 0)).back() ? op : OpId();
}

// Sees through a view of the product: exporters of TensorFlow multiply matrices, and add the bias
// after they parted the rows by samples again.
void AddBias(Rewriter& r, OpId op) {
  for (size_t i = 0; i < 2; ++i) {
    const ValueId sum = r.operand(op, i), bias = r.operand(op, 1 - i);
    if (r.rank(bias) != 1 || r.rank(sum) < 2 || r.dims(bias)[0] != r.dims(sum).back()) continue;
    const OpId view = ViewOfColumns(r, sum);
    const OpId matmul = Product(r, view.valid() ? r.operand(view, 0) : sum);
    if (!matmul.valid()) continue;
    ValueId y = r.Op(OpKind::kLinear, {r.operand(matmul, 0), r.operand(matmul, 1), bias},
                     r.attributes(matmul));
    if (view.valid()) y = r.Op(OpKind::kReshape, {y}, r.attributes(view));
    if (y.valid()) r.Replace(r.result(op), y);
    return;
  }
}

void AddActivation(Rewriter& r, OpId op, const std::string& activation) {
  const ValueId x = r.operand(op, 0);
  OpId linear = r.MadeOnlyFor(x, OpKind::kLinear);
  if (!linear.valid()) linear = Product(r, x);
  if (!linear.valid() || r.attributes(linear).Find("activation") != nullptr) return;
  AttributeSet attributes = r.attributes(linear);
  attributes.Set("activation", activation);
  r.Replace(r.result(op), r.Op(OpKind::kLinear, r.function().operands(linear), attributes));
}

void FuseLinear(Rewriter& r, OpId op) {
  switch (r.kind(op)) {
    case OpKind::kAdd:
      return AddBias(r, op);
    case OpKind::kRelu:
      return AddActivation(r, op, "relu");
    case OpKind::kSilu:
      return AddActivation(r, op, "silu");
    case OpKind::kGelu: {
      const std::string form = r.attributes(op).String("approximate", "none");
      if (form == "sigmoid") return;  // no library does it with the product
      return AddActivation(r, op, form == "tanh" ? "gelu_tanh" : "gelu");
    }
    default:
      return;
  }
}

}  // namespace
}  // namespace fuse_linear_cc

extern const PassInfo kFuseLinearPass = {
    .name = "fuse-linear",
    .summary = "makes one Linear of a product, its bias and its activation",
    .options = "",
    .run = [](ir::Function& function,
              const PassOptions&) { return Rewrite(function, fuse_linear_cc::FuseLinear); },
    .idempotent = true,
};

}  // namespace orrery::transforms
