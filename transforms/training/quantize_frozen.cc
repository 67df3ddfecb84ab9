#include "transforms/training/quantize_frozen.h"

#include <algorithm>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "ir/builder.h"
#include "ir/copy.h"
#include "ir/op_info.h"
#include "ir/op_kind.h"
#include "support/status.h"
#include "support/word_list.h"
#include "transforms/pass/pass.h"
#include "transforms/training/step_phases.h"

namespace orrery::transforms {
namespace quantize_frozen_cc {
namespace {

using ir::DType;
using ir::Function;
using ir::InputRole;
using ir::OpId;
using ir::OpKind;
using ir::ValueId;

constexpr std::pair<absl::string_view, DType> kForms[] = {{"int8", DType::kI8Block},
                                                          {"nf4", DType::kNF4}};

std::optional<DType> FindForm(absl::string_view name) {
  for (const auto& [known, dtype] : kForms) {
    if (known == name) return dtype;
  }
  return std::nullopt;
}

// Frozen matrices that products alone read.
IdTable<ValueId, char> FindMatrices(const Function& function) {
  IdTable<ValueId, char> chosen(function.value_limit(), 0);
  for (const ir::Input& input : function.inputs()) {
    const ir::TensorType& type = function.type(input.value);
    const bool frozen = input.role == InputRole::kFrozen || input.role == InputRole::kBuffer;
    chosen[input.value] = frozen && type.dims.size() >= 2 && ir::IsFloat(type.dtype);
  }
  IdTable<ValueId, char> multiplied(function.value_limit(), 0);
  for (const OpId op : function.order()) {
    const ir::OpInfo& info = function.info(op);
    const bool product = info.matrix_product && info.products != nullptr;
    for (const ValueId operand : function.operands(op)) {
      if (product) multiplied[operand] = 1;
      if (!product) chosen[operand] = 0;
    }
  }
  for (const ir::Input& input : function.inputs()) {
    if (multiplied[input.value] == 0) chosen[input.value] = 0;
  }
  for (const ir::Output& output : function.outputs()) chosen[output.value] = 0;
  return chosen;
}

// Leaves those of more than 8 bits; an error where there are none.
absl::Status KeepWide(const Function& function, absl::string_view dtype,
                      IdTable<ValueId, char>& chosen) {
  std::optional<DType> narrow;
  bool any = false;
  for (const ir::Input& input : function.inputs()) {
    if (chosen[input.value] == 0) continue;
    const DType type = function.type(input.value).dtype;
    const bool wide = ir::SizeOf(type) > 1;
    any = any || wide;
    if (wide) continue;
    narrow = type;
    chosen[input.value] = 0;
  }
  if (any) return absl::OkStatus();
  const std::string where = absl::StrCat(function.name(), ": `frozen-dtype` ", dtype, ": ");
  if (narrow.has_value()) {
    return absl::InvalidArgumentError(absl::StrCat(
        where, "its frozen matrices are ", ir::ToString(*narrow),
        " already; wanted 16 bits or more of them; try `dtype` bf16, or `frozen-dtype` none"));
  }
  return absl::InvalidArgumentError(
      absl::StrCat(where,
                   "no frozen matrix that products alone read; wanted some, as `lora` or `freeze` "
                   "make them"));
}

class Storing {
 public:
  Storing(const Function& function, DType dtype, IdTable<ValueId, char> chosen)
      : from_(function),
        dtype_(dtype),
        chosen_(std::move(chosen)),
        builder_(function.name(), function.mesh()),
        copy_{.from = function, .to = builder_.function()} {}

  absl::StatusOr<Function> Run() {
    for (const ir::Input& input : from_.inputs()) {
      if (chosen_[input.value] == 0) {
        ir::CopyInput(input, input.role, copy_);
        continue;
      }
      ir::TensorType type = from_.type(input.value);
      type.dtype = dtype_;
      // A weight in fewer bits is a weight, also where it was a buffer that nobody trains.
      copy_.values[input.value] =
          builder_.AddInput(from_.value_name(input.value), type, InputRole::kFrozen);
    }
    for (const OpId op : from_.order()) {
      if (!builder_.status().ok()) return builder_.status();
      Copy(op);
    }
    ir::CopyOutputs(from_.outputs(), copy_);
    return std::move(builder_).Finalize();
  }

 private:
  // Each product has a copy of its own, which is gone behind it.
  void Copy(OpId op) {
    std::vector<ValueId> operands;
    for (const ValueId operand : from_.operands(op)) {
      ValueId value = copy_.values[operand];
      if (chosen_[operand] != 0) {
        const std::string type(ir::ToString(from_.type(operand).dtype));
        value = builder_.Op(OpKind::kCast, {value}, "", {{"to", type}});
      }
      operands.push_back(value);
    }
    if (builder_.status().ok()) ir::CopyOp(op, operands, from_.attributes(op), copy_);
  }

  const Function& from_;
  const DType dtype_;
  const IdTable<ValueId, char> chosen_;
  ir::Builder builder_;
  ir::FunctionCopy copy_;
};

bool MakesWeight(const Function& function, OpId op) {
  return function.kind(op) == OpKind::kCast &&
         ir::IsQuantized(function.type(function.operands(op)[0]).dtype);
}

Function CastAgain(const Function& from) {
  const IdTable<OpId, StepPhase> phase = FindPhases(from);
  Function to(from.name(), from.mesh());
  ir::FunctionCopy copy{.from = from, .to = to};
  for (const ir::Input& input : from.inputs()) ir::CopyInput(input, input.role, copy);
  for (const OpId op : from.order()) {
    std::vector<ValueId> operands;
    for (const ValueId operand : from.operands(op)) {
      const OpId maker = from.producer(operand);
      const bool again =
          phase[op] != StepPhase::kForward && maker.valid() && MakesWeight(from, maker);
      if (!again) {
        operands.push_back(copy.values[operand]);
        continue;
      }
      const ValueId stored[] = {copy.values[from.operands(maker)[0]]};
      const ir::TypeId type = to.InternType(from.type(operand));
      const OpId cast = to.AddOpOfTypes(OpKind::kCast, stored,
                                        to.InternAttributes(from.attributes(maker)), {&type, 1});
      operands.push_back(to.result(cast));
    }
    ir::CopyOp(op, operands, from.attributes(op), copy);
  }
  ir::CopyOutputs(from.outputs(), copy);
  return to;
}

}  // namespace
}  // namespace quantize_frozen_cc

std::string FrozenDTypeNames() {
  std::vector<absl::string_view> names = {"none"};
  for (const auto& [name, dtype] : quantize_frozen_cc::kForms) names.push_back(name);
  return ListWords(names, " or ");
}

absl::StatusOr<bool> QuantizeFrozen(ir::Function& function, absl::string_view dtype) {
  if (dtype.empty() || dtype == "none") return false;
  const std::optional<ir::DType> form = quantize_frozen_cc::FindForm(dtype);
  if (!form.has_value()) {
    return absl::InvalidArgumentError(
        absl::StrCat("`frozen-dtype` ", dtype, ": wanted ", FrozenDTypeNames()));
  }
  if (HasBackward(function)) {
    return absl::InvalidArgumentError(
        absl::StrCat(function.name(),
                     ": has a backward pass already; wanted a forward one for "
                     "`frozen-dtype`"));
  }
  IdTable<ir::ValueId, char> chosen = quantize_frozen_cc::FindMatrices(function);
  ORRERY_RETURN_IF_ERROR(quantize_frozen_cc::KeepWide(function, dtype, chosen));
  ORRERY_ASSIGN_OR_RETURN(function,
                          quantize_frozen_cc::Storing(function, *form, std::move(chosen)).Run());
  return true;
}

bool CastAgainInBackward(ir::Function& function) {
  if (std::ranges::none_of(function.order(), [&](ir::OpId op) {
        return quantize_frozen_cc::MakesWeight(function, op);
      })) {
    return false;
  }
  function = quantize_frozen_cc::CastAgain(function);
  return true;
}

extern const PassInfo kQuantizeFrozenPass = {
    .name = "quantize-frozen",
    .summary = "stores frozen matrices in 8 or 4 bits, with a cast before each product",
    .options = "dtype=nf4",
    .run = [](ir::Function& function,
              const PassOptions& options) { return QuantizeFrozen(function, options.at("dtype")); },
};

}  // namespace orrery::transforms
