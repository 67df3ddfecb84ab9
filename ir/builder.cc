#include "ir/builder.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "ir/op_info.h"
#include "ir/op_kind.h"
#include "support/check.h"
#include "support/status.h"

namespace orrery::ir {
namespace builder_cc {
namespace {

std::string Where(const Function& function, OpKind kind, std::span<const absl::string_view> names) {
  std::string where = absl::StrCat(function.name(), ": ", GetOpInfo(kind).name);
  if (!names.empty() && !names[0].empty()) absl::StrAppend(&where, " '", names[0], "'");
  return where;
}

}  // namespace
}  // namespace builder_cc

ValueId Builder::AddInput(absl::string_view name, const TensorType& type, InputRole role) {
  if (!status_.ok()) return ValueId();
  if (!IsWithinLimits(type) || ElementCount(type.dims) == 0) {
    Fail(absl::InvalidArgumentError(
        absl::StrCat(function_.name(), ": input '", name, "' is ", ToString(type, function_.mesh()),
                     "; wanted at most 30 dimensions of at least 1 and at most 2^60 bytes")));
    return ValueId();
  }
  return function_.AddInput(name, type, role);
}

const Builder::TypeIds* Builder::Infer(OpKind kind, std::span<const ValueId> operands,
                                       AttributesId attributes,
                                       std::span<const absl::string_view> names) {
  for (const ValueId operand : operands) {
    ORRERY_CHECK(operand.valid()) << builder_cc::Where(function_, kind, names) << ": operand "
                                  << operand;
  }
  const TypeIds* const known = inferred_.Find(function_, kind, attributes, operands);
  if (known != nullptr) return known;
  absl::InlinedVector<const TensorType*, 4> types;
  for (const ValueId operand : operands) types.push_back(&function_.type(operand));
  const absl::Status status = InferTypes(kind,
                                         {.attributes = function_.attribute_set(attributes),
                                          .operands = types,
                                          .mesh = function_.mesh()},
                                         scratch_);
  if (!status.ok()) {
    Fail(Annotate(status, builder_cc::Where(function_, kind, names)));
    return nullptr;
  }
  TypeIds results;
  for (const TensorType& type : scratch_) results.push_back(function_.InternType(type));
  return &inferred_.Put(function_, kind, attributes, operands, std::move(results));
}

OpId Builder::Ops(OpKind kind, std::span<const ValueId> operands,
                  std::span<const absl::string_view> names, const AttributeSet& attributes) {
  if (!status_.ok()) return OpId();
  const AttributesId interned = function_.InternAttributes(attributes);
  const TypeIds* const types = Infer(kind, operands, interned, names);
  if (types == nullptr) return OpId();
  return function_.AddOpOfTypes(kind, operands, interned, *types, names);
}

ValueId Builder::Op(OpKind kind, std::span<const ValueId> operands, absl::string_view name,
                    const AttributeSet& attributes) {
  const OpId op = Ops(kind, operands, std::span(&name, 1), attributes);
  return op.valid() ? function_.result(op) : ValueId();
}

OpId Builder::TypedOp(OpKind kind, std::span<const ValueId> operands, const TensorType& type,
                      absl::string_view name, const AttributeSet& attributes) {
  if (!status_.ok()) return OpId();
  return function_.AddOp(kind, operands, function_.InternAttributes(attributes),
                         std::span(&type, 1), std::span(&name, 1));
}

ValueId Builder::MatMul(ValueId x, ValueId w, absl::string_view name) {
  return Op(OpKind::kMatMul, {x, w}, name);
}

ValueId Builder::Add(ValueId x, ValueId y, absl::string_view name) {
  return Op(OpKind::kAdd, {x, y}, name);
}

ValueId Builder::Relu(ValueId x, absl::string_view name) { return Op(OpKind::kRelu, {x}, name); }

ValueId Builder::ReluGrad(ValueId x, ValueId dy, absl::string_view name) {
  return Op(OpKind::kReluGrad, {x, dy}, name);
}

std::pair<ValueId, ValueId> Builder::MatMulGrad(ValueId x, ValueId w, ValueId dy,
                                                absl::string_view dx_name,
                                                absl::string_view dw_name) {
  const ValueId operands[] = {x, w, dy};
  const absl::string_view names[] = {dx_name, dw_name};
  const OpId op = Ops(OpKind::kMatMulGrad, operands, names);
  if (!op.valid()) return {};
  return {function_.result(op, 0), function_.result(op, 1)};
}

ValueId Builder::Loss(ValueId prediction, ValueId target, int64_t batch, absl::string_view name) {
  return Op(OpKind::kLoss, {prediction, target}, name, {{"batch", batch}});
}

ValueId Builder::LossGrad(ValueId prediction, ValueId target, int64_t batch,
                          absl::string_view name) {
  return Op(OpKind::kLossGrad, {prediction, target}, name, {{"batch", batch}});
}

bool Builder::IsTaken(absl::string_view name) {
  for (; named_ < function_.value_limit(); ++named_) {
    taken_.insert(function_.value_name(ValueId(named_)));
  }
  return taken_.contains(name);
}

std::string Builder::FreeName(std::string name) {
  while (IsTaken(name)) name += "'";
  return name;
}

void Builder::Return(ValueId value, OutputRole role, ValueId of) {
  if (status_.ok()) function_.AddOutput({.value = value, .role = role, .of = of});
}

void Builder::Fail(const absl::Status& status) {
  if (status_.ok()) status_ = status;
}

TensorType Builder::type(ValueId value) const {
  return value.valid() ? function_.type(value) : TensorType();
}

absl::StatusOr<Function> Builder::Finalize() && {
  if (!status_.ok()) return status_;
  return std::move(function_);
}

GradientContext::GradientContext(Builder& builder, OpId op,
                                 std::span<const ValueId> result_gradients,
                                 const IdTable<ValueId, char>& needed,
                                 const BatchPlaces* batch_places)
    : builder_(builder),
      op_(op),
      result_gradients_(result_gradients),
      needed_(needed),
      places_(batch_places),
      operand_gradients_(builder.function().operands(op).size()) {}

std::string GradientContext::GradientName(int i) const {
  for (int k = 0; k < i; ++k) {  // a value that is two operands has two gradients
    if (operand(k) == operand(i)) return "";
  }
  const absl::string_view name = builder_.function().value_name(operand(i));
  if (name.empty()) return "";
  const std::string gradient = absl::StrCat("d", name);
  return builder_.IsTaken(gradient) ? "" : gradient;
}

}  // namespace orrery::ir
