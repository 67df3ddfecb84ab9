#include "transforms/training/split_loss.h"

#include <algorithm>
#include <map>
#include <string>
#include <tuple>

#include "ir/op_kind.h"
#include "transforms/pass/rewriter.h"

namespace orrery::transforms {
namespace split_loss_cc {
namespace {

using ir::OpId;
using ir::OpKind;
using ir::ValueId;

bool Splits(const ir::Function& function, OpId op, int64_t parts) {
  const OpKind kind = function.kind(op);
  if (kind != OpKind::kCrossEntropy && kind != OpKind::kCrossEntropyGrad) return false;
  const int64_t classes = function.type(function.operands(op)[0]).dims.back();
  return classes >= parts && classes % parts == 0;
}

class LossSplitter {
 public:
  explicit LossSplitter(int64_t parts) : parts_(parts) {}

  void Visit(Rewriter& r, OpId op) {
    if (!Splits(r.function(), op, parts_)) return;
    const bool loss = r.kind(op) == OpKind::kCrossEntropy;
    const ValueId logits = r.operand(op, 0), labels = r.operand(op, 1);
    const ValueId parts = PartsOf(r, op);
    if (!parts.valid()) return;
    ir::AttributeSet attributes = r.attributes(op);
    if (!loss) {
      Replace(r, op, r.Op(OpKind::kCrossEntropyPartsGrad, {logits, labels, parts}, attributes));
      return;
    }
    const ir::DType dtype = r.type(r.result(op)).dtype;
    if (dtype != r.type(parts).dtype) attributes.Set("to", std::string(ToString(dtype)));
    Replace(r, op, r.Op(OpKind::kCrossEntropyOfParts, {parts, labels}, attributes));
  }

 private:
  // Loss and gradient find the same parts, whoever comes first.
  ValueId PartsOf(Rewriter& r, OpId op) {
    ir::AttributeSet attributes = {{"parts", parts_}};
    if (const ir::Attribute* ignored = r.attributes(op).Find("ignore_index"); ignored != nullptr) {
      attributes.Set("ignore_index", *ignored);
    }
    const ValueId logits = r.operand(op, 0), labels = r.operand(op, 1);
    ValueId& parts = made_[{logits, labels, ir::ToString(attributes)}];
    if (!parts.valid()) parts = r.Op(OpKind::kCrossEntropyParts, {logits, labels}, attributes);
    return parts;
  }

  static void Replace(Rewriter& r, OpId op, ValueId value) {
    if (value.valid()) r.Replace(r.result(op), value);
  }

  const int64_t parts_;
  std::map<std::tuple<ValueId, ValueId, std::string>, ValueId> made_;
};

}  // namespace
}  // namespace split_loss_cc

bool HasLossToSplit(const ir::Function& function, int64_t parts) {
  return std::ranges::any_of(
      function.order(), [&](ir::OpId op) { return split_loss_cc::Splits(function, op, parts); });
}

absl::StatusOr<bool> SplitLosses(ir::Function& function, int64_t parts) {
  split_loss_cc::LossSplitter splitter(parts);
  return Rewrite(function, [&](Rewriter& r, ir::OpId op) { splitter.Visit(r, op); });
}

}  // namespace orrery::transforms
