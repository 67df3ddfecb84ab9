#include "transforms/training/fp8_mixed.h"

#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "ir/builder.h"
#include "ir/copy.h"
#include "ir/op_info.h"
#include "ir/op_kind.h"
#include "support/status.h"
#include "transforms/pass/pass.h"
#include "transforms/training/fp8_products.h"

namespace orrery::transforms {
namespace fp8_mixed_cc {
namespace {

using ir::Function;
using ir::OpId;
using ir::OpKind;
using ir::ValueId;

class Rebuilder {
 public:
  Rebuilder(const Function& from, const Fp8Products& products, ir::DType copies)
      : from_(from),
        products_(products),
        narrow_type_(copies),
        builder_(from.name(), from.mesh()),
        copy_{.from = from, .to = builder_.function()},
        narrow_(from.value_limit()) {}

  absl::StatusOr<Function> Run() && {
    for (const ir::Input& input : from_.inputs()) {
      ir::CopyInput(input, input.role, copy_);
      if (products_.weights.contains(input.value)) AddCopyOf(input.value, input.role);
    }
    for (const OpId op : from_.order()) {
      if (!builder_.status().ok()) break;
      CopyOp(op);
    }
    if (builder_.status().ok()) {
      ir::CopyOutputs(from_.outputs(), copy_);
      UpdateCopies();
    }
    return std::move(builder_).Finalize();
  }

 private:
  ir::AttributeSet ToNarrow() const { return {{"to", std::string(ir::ToString(narrow_type_))}}; }

  std::string NameOf(ValueId value) {
    const absl::string_view name = from_.value_name(value);
    return name.empty() ? ""
                        : builder_.FreeName(absl::StrCat(name, ".", ir::ToString(narrow_type_)));
  }

  // The copy of a weight that lasts as long as the weight.
  void AddCopyOf(ValueId weight, ir::InputRole role) {
    ir::TensorType type = from_.type(weight);
    type.dtype = narrow_type_;
    narrow_[weight] = builder_.AddInput(NameOf(weight), type, role);
  }

  void CopyOp(OpId op) {
    if (products_.operands[op] > 0) return CopyProduct(op);
    const bool moves = MovesCopies(from_, op);
    if (!moves || products_.only_in_copies[from_.result(op)] == 0) return ir::CopyOp(op, copy_);
    const ValueId operand = Narrow(from_.operands(op)[0]);
    narrow_[from_.result(op)] =
        builder_.Op(from_.kind(op), {operand}, NameOf(from_.result(op)), from_.attributes(op));
  }

  void CopyProduct(OpId op) {
    const auto old = from_.operands(op);
    std::vector<ValueId> operands;
    for (size_t i = 0; i < old.size(); ++i) {
      const bool narrow = i < static_cast<size_t>(products_.operands[op]);
      operands.push_back(narrow ? Narrow(old[i]) : copy_.values[old[i]]);
    }
    std::vector<absl::string_view> names;
    for (int32_t i = 0; i < from_.result_count(op); ++i) {
      names.push_back(from_.value_name(from_.result(op, i)));
    }
    ir::AttributeSet attributes = from_.attributes(op);
    attributes.Set("out", std::string(ir::ToString(from_.type(from_.result(op)).dtype)));
    const OpId made = builder_.Ops(from_.kind(op), operands, names, attributes);
    if (!made.valid()) return;
    for (int32_t i = 0; i < from_.result_count(op); ++i) {
      copy_.values[from_.result(op, i)] = builder_.function().result(made, i);
    }
  }

  // The narrow copy of a value that is there, made where it is first wanted.
  ValueId Narrow(ValueId value) {
    ValueId& narrow = narrow_[value];
    if (!narrow.valid()) {
      narrow = builder_.Op(OpKind::kCast, {copy_.values[value]}, NameOf(value), ToNarrow());
    }
    return narrow;
  }

  void UpdateCopies() {
    for (const ir::Output& output : from_.outputs()) {
      const bool copied = output.role == ir::OutputRole::kUpdated &&
                          products_.weights.contains(output.of) && builder_.status().ok();
      if (!copied) continue;
      const ValueId copy = narrow_[output.of];
      const absl::string_view name = builder_.function().value_name(copy);
      const ValueId updated =
          builder_.Op(OpKind::kCast, {copy_.values[output.value]},
                      name.empty() ? "" : builder_.FreeName(absl::StrCat(name, "'")), ToNarrow());
      builder_.Return(updated, ir::OutputRole::kUpdated, copy);
    }
  }

  const Function& from_;
  const Fp8Products& products_;
  const ir::DType narrow_type_;
  ir::Builder builder_;
  ir::FunctionCopy copy_;
  IdTable<ValueId, ValueId> narrow_;  // narrow copies, by values of `from_`
};

}  // namespace
}  // namespace fp8_mixed_cc

absl::StatusOr<bool> Fp8Mixed(ir::Function& function) {
  return MixProducts(function, ir::DType::kF8);
}

absl::StatusOr<bool> Fp8Block(ir::Function& function) {
  return MixProducts(function, ir::DType::kF8Block);
}

absl::StatusOr<bool> Nvfp4Mixed(ir::Function& function) {
  return MixProducts(function, ir::DType::kF4);
}

absl::StatusOr<bool> MixProducts(ir::Function& function, ir::DType copies) {
  const Fp8Products products = FindFp8Products(function, copies);
  bool any = false;
  for (const ir::OpId op : function.order()) any = any || products.operands[op] > 0;
  if (!any) return false;
  ORRERY_ASSIGN_OR_RETURN(function, fp8_mixed_cc::Rebuilder(function, products, copies).Run());
  return true;
}

std::vector<WeightCopy> FindWeightCopies(const ir::Function& function) {
  std::vector<WeightCopy> copies;
  for (const ir::Output& output : function.outputs()) {
    const ir::OpId cast = function.producer(output.value);
    const bool is_copy = cast.valid() && MakesCopy(function, cast);
    if (output.role != ir::OutputRole::kUpdated || !is_copy) continue;
    // An update that is sharded or done elsewhere has moves between the two.
    ir::ValueId updated = function.operands(cast)[0];
    ir::OpId op = function.producer(updated);
    while (op.valid() && function.operands(op).size() == 1) {
      updated = function.operands(op)[0];
      op = function.producer(updated);
    }
    if (!op.valid() || function.info(op).op_class != ir::OpClass::kOptimizer) continue;
    const auto position = static_cast<size_t>(updated.index() - function.result(op).index());
    copies.push_back(
        {.parameter = function.operands(op)[position], .copy = output.of, .cast = cast});
  }
  return copies;
}

extern const PassInfo kFp8MixedPass = {
    .name = "fp8-mixed",
    .summary = "products of linear layers read 8-bit copies of their operands",
    .options = "",
    .run = [](ir::Function& function, const PassOptions&) { return Fp8Mixed(function); },
    .idempotent = true,
};

extern const PassInfo kFp8BlockPass = {
    .name = "fp8-block",
    .summary = "products of linear layers read 8-bit copies with a scale for each 128 elements",
    .options = "",
    .run = [](ir::Function& function, const PassOptions&) { return Fp8Block(function); },
    .idempotent = true,
};

extern const PassInfo kNvfp4MixedPass = {
    .name = "nvfp4-mixed",
    .summary = "products of linear layers read 4-bit copies of their operands",
    .options = "",
    .run = [](ir::Function& function, const PassOptions&) { return Nvfp4Mixed(function); },
    .idempotent = true,
};

}  // namespace orrery::transforms
