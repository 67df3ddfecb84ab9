#include "ir/copy.h"

#include <vector>

namespace orrery::ir {

void CopyInput(const Input& input, InputRole role, FunctionCopy& copy) {
  copy.values[input.value] =
      copy.to.AddInput(copy.from.value_name(input.value), copy.from.type(input.value), role);
}

void CopyOp(OpId op, FunctionCopy& copy) {
  std::vector<ValueId> operands;
  for (const ValueId operand : copy.from.operands(op)) operands.push_back(copy.values[operand]);
  CopyOp(op, operands, copy.from.attributes(op), copy);
}

void CopyOp(OpId op, std::span<const ValueId> operands, const AttributeSet& attributes,
            FunctionCopy& copy) {
  const Function& from = copy.from;
  std::vector<TensorType> types;
  std::vector<absl::string_view> names;
  for (int32_t i = 0; i < from.result_count(op); ++i) {
    types.push_back(from.type(from.result(op, i)));
    names.push_back(from.value_name(from.result(op, i)));
  }
  const OpId made =
      copy.to.AddOp(from.kind(op), operands, copy.to.InternAttributes(attributes), types, names);
  for (int32_t i = 0; i < from.result_count(op); ++i) {
    copy.values[from.result(op, i)] = copy.to.result(made, i);
  }
}

void CopyOutputs(std::span<const Output> outputs, FunctionCopy& copy) {
  for (const Output& output : outputs) {
    copy.to.AddOutput({.value = copy.values[output.value],
                       .role = output.role,
                       .of = output.of.valid() ? copy.values[output.of] : ValueId()});
  }
}

}  // namespace orrery::ir
