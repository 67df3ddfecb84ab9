#include "ir/function.h"

#include <algorithm>
#include <functional>

#include "absl/container/inlined_vector.h"
#include "absl/strings/str_cat.h"
#include "ir/names.h"
#include "ir/op_info.h"
#include "ir/roles.h"
#include "support/check.h"

namespace orrery::ir {

absl::string_view ToString(InputRole role) { return kInputRoleNames.Of(role); }
absl::string_view ToString(OutputRole role) { return kOutputRoleNames.Of(role); }

ValueId Function::AddValue(absl::string_view name, TypeId type, OpId producer) {
  names_.push_back(name);
  value_producers_.push_back(producer);
  return value_types_.push_back(type);
}

ValueId Function::AddInputOfType(absl::string_view name, TypeId type, InputRole role) {
  const ValueId value = AddValue(name, type, OpId());
  inputs_.push_back({.value = value, .role = role});
  return value;
}

OpId Function::AddOp(OpKind kind, std::span<const ValueId> operands, AttributesId attributes,
                     std::span<const TensorType> types, std::span<const absl::string_view> names) {
  absl::InlinedVector<TypeId, 4> ids;
  for (const TensorType& type : types) ids.push_back(types_.Intern(type));
  return AddOpOfTypes(kind, operands, attributes, ids, names);
}

OpId Function::AddOpOfTypes(OpKind kind, std::span<const ValueId> operands, AttributesId attributes,
                            std::span<const TypeId> types,
                            std::span<const absl::string_view> names) {
  ORRERY_CHECK(names.empty() || names.size() == types.size()) << GetOpInfo(kind).name;
  const OpId op = op_kinds_.push_back(kind);
  op_operands_.push_back({.begin = static_cast<uint32_t>(operand_pool_.size()),
                          .count = static_cast<uint32_t>(operands.size())});
  for (const ValueId operand : operands) {
    ORRERY_CHECK(operand.valid() && operand.index() < value_limit())
        << op << " " << GetOpInfo(kind).name << " uses " << operand;
  }
  AppendOperands(operands);
  op_results_.push_back(
      {.first = ValueId(value_limit()), .count = static_cast<int32_t>(types.size())});
  op_attributes_.push_back(attributes);
  for (size_t i = 0; i < types.size(); ++i) {
    AddValue(names.empty() ? absl::string_view() : names[i], types[i], op);
  }
  order_.push_back(op);
  return op;
}

// `operands` may be those of another op, in the very pool that grows here.
void Function::AppendOperands(std::span<const ValueId> operands) {
  const size_t begin = operand_pool_.size();
  const std::less<> before;
  const bool own = !operands.empty() && !before(operands.data(), operand_pool_.data()) &&
                   before(operands.data(), operand_pool_.data() + begin);
  const auto position = static_cast<size_t>(own ? operands.data() - operand_pool_.data() : 0);
  operand_pool_.resize(begin + operands.size());
  const ValueId* const from = own ? operand_pool_.data() + position : operands.data();
  std::copy_n(from, operands.size(), operand_pool_.data() + begin);
}

void Function::Reserve(int32_t ops, int32_t values) {
  op_kinds_.reserve(ops);
  op_operands_.reserve(ops);
  op_results_.reserve(ops);
  op_attributes_.reserve(ops);
  order_.reserve(static_cast<size_t>(ops));
  value_types_.reserve(values);
  names_.reserve(static_cast<size_t>(values));
  value_producers_.reserve(values);
}

// A type has its dimensions, shardings and an entry of a hash map; of the text of names,
// which copies share, so much is counted for each value.
int64_t Function::held_bytes() const {
  constexpr int64_t kOfEntry = 160, kOfName = 24;
  const auto bytes = [](const auto& of) {
    return static_cast<int64_t>(of.capacity() * sizeof(of.front()));
  };
  constexpr int64_t kOfOp = sizeof(OpKind) + sizeof(Range) + sizeof(Results) + sizeof(AttributesId);
  constexpr int64_t kOfValue = sizeof(TypeId) + sizeof(OpId) + sizeof(absl::string_view) + kOfName;
  constexpr int64_t kOfType = sizeof(TensorType) + kOfEntry;
  return static_cast<int64_t>(sizeof(Function)) + kOfOp * op_limit() + kOfValue * value_limit() +
         kOfType * types_.size() + bytes(operand_pool_) + bytes(inputs_) + bytes(outputs_) +
         bytes(order_);
}

InputRole Function::input_role(ValueId value) const {
  for (const Input& input : inputs_) {
    if (input.value == value) return input.role;
  }
  ORRERY_CHECK(false) << value << " is no input of " << name_;
  return InputRole::kData;
}

void Function::SetInputRole(ValueId value, InputRole role) {
  for (Input& input : inputs_) {
    if (input.value != value) continue;
    input.role = role;
    return;
  }
  ORRERY_CHECK(false) << value << " is no input of " << name_;
}

std::string PrintValue(const Function& function, ValueId value) {
  const absl::string_view name = function.value_name(value);
  if (!name.empty()) return absl::StrCat("%", IsPlainName(name) ? std::string(name) : Quote(name));
  int32_t position = 0;
  for (const Input& input : function.inputs()) {
    if (input.value == value) return absl::StrCat("%", position);
    ++position;
  }
  for (const OpId op : function.order()) {
    const int32_t i = value.index() - function.result(op).index();
    if (i >= 0 && i < function.result_count(op)) return absl::StrCat("%", position + i);
    position += function.result_count(op);
  }
  return absl::StrCat("%<", ToString(value), ">");  // in use no more: a text that reads as nothing
}

IdTable<ValueId, int32_t> CountUses(const Function& function) {
  IdTable<ValueId, int32_t> uses(function.value_limit(), 0);
  for (const OpId op : function.order()) {
    for (const ValueId operand : function.operands(op)) ++uses[operand];
  }
  for (const Output& output : function.outputs()) ++uses[output.value];
  return uses;
}

}  // namespace orrery::ir
