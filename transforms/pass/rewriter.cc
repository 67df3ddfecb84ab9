#include "transforms/pass/rewriter.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "ir/dead_code.h"
#include "ir/op_info.h"
#include "ir/op_kind.h"
#include "support/check.h"
#include "support/status.h"

namespace orrery::transforms {

using ir::Function;
using ir::OpId;
using ir::OpKind;
using ir::ValueId;

Rewriter::Rewriter(Function function) : builder_(std::move(function)) {
  uses_ = ir::CountUses(this->function());
  returned_ = IdTable<ValueId, char>(this->function().value_limit(), 0);
  replaced_ = IdTable<ValueId, ValueId>(this->function().value_limit());
  dead_ = IdTable<OpId, char>(this->function().op_limit(), 0);
  placed_ = dead_;
  for (const ir::Output& output : this->function().outputs()) returned_[output.value] = 1;
  taken_ = this->function().op_limit();
}

OpId Rewriter::MadeBy(ValueId value, OpKind kind) const {
  const OpId op = producer(value);
  if (!op.valid() || this->kind(op) != kind || result(op) != value) return OpId();
  return op;
}

OpId Rewriter::MadeOnlyFor(ValueId value, OpKind kind, int32_t times) const {
  return uses(value) == times ? MadeBy(value, kind) : OpId();
}

std::optional<double> Rewriter::Number(ValueId value) const {
  const OpId op = MadeBy(value, OpKind::kConstant);
  if (!op.valid()) return std::nullopt;
  const ir::AttributeSet& set = attributes(op);
  if (const ir::Attribute* fill = set.Find("fill"); fill != nullptr) return set.Number("fill", 0);
  if (ir::ElementCount(dims(value)) != 1) return std::nullopt;
  const std::optional<ir::Tensor> tensor = ir::ConstantTensor(set, type(value));
  if (!tensor.has_value()) return std::nullopt;
  return tensor->Number(0);
}

std::optional<ir::Tensor> Rewriter::Known(ValueId value, int64_t limit) const {
  const OpId op = MadeBy(value, OpKind::kConstant);
  if (!op.valid() || ir::ElementCount(dims(value)) > limit) return std::nullopt;
  return ir::ConstantTensor(attributes(op), type(value));
}

OpId Rewriter::Ops(OpKind kind, std::span<const ValueId> operands,
                   const ir::AttributeSet& attributes) {
  const OpId op = builder_.Ops(kind, operands, {}, attributes);
  if (op.valid()) TakeNewOps();
  return op;
}

ValueId Rewriter::Op(OpKind kind, std::span<const ValueId> operands,
                     const ir::AttributeSet& attributes) {
  const OpId op = Ops(kind, operands, attributes);
  return op.valid() ? result(op) : ValueId();
}

ValueId Rewriter::Constant(const ir::Tensor& tensor) {
  const OpId op =
      builder_.TypedOp(OpKind::kConstant, {}, tensor.type(), "", ir::ConstantAttributes(tensor));
  if (!op.valid()) return ValueId();
  TakeNewOps();
  return result(op);
}

ValueId Rewriter::Filled(const ir::TensorType& type, double value) {
  const ir::Attribute fill =
      ir::IsFloat(type.dtype) ? ir::Attribute(value) : ir::Attribute(static_cast<int64_t>(value));
  const OpId op = builder_.TypedOp(OpKind::kConstant, {}, type, "", {{"fill", fill}});
  if (!op.valid()) return ValueId();
  TakeNewOps();
  return result(op);
}

void Rewriter::TakeNewOps() {
  const int32_t values = function().value_limit();
  uses_.resize(values, 0);
  returned_.resize(values, 0);
  replaced_.resize(values);
  dead_.resize(function().op_limit(), 0);
  placed_.resize(function().op_limit(), 0);
  for (; taken_ < function().op_limit(); ++taken_) {
    const OpId op(taken_);
    Place(op);
    for (const ValueId value : function().operands(op)) ++uses_[value];
  }
}

void Rewriter::Place(OpId op) {
  order_.push_back(op);
  placed_[op] = 1;
}

bool Rewriter::MayReplace(ValueId old, ValueId value) const {
  return !is_returned(old) || (!is_returned(value) && producer(value).valid());
}

void Rewriter::Replace(ValueId old, ValueId value) {
  if (!builder_.status().ok()) return;
  ORRERY_CHECK(function().type_id(old) == function().type_id(value))
      << ir::PrintValue(function(), old) << " is to be replaced by another type";
  changed_ = true;
  replaced_[old] = value;
  uses_[value] += std::exchange(uses_[old], 0);
  const absl::string_view name = function().value_name(old);
  if (is_returned(old) || function().value_name(value).empty()) {
    builder_.function().SetKeptName(value, name);
    builder_.function().SetKeptName(old, "");
  }
  if (is_returned(old)) returned_[value] = 1;
  if (producer(old).valid()) DropIfUnused(producer(old));
}

// Takes the op away with all that was made for it alone.
void Rewriter::DropIfUnused(OpId first) {
  std::vector<OpId> open = {first};
  while (!open.empty()) {
    const OpId op = open.back();
    open.pop_back();
    bool used = dead_[op] != 0 || function().result_count(op) == 0;
    for (int32_t i = 0; i < function().result_count(op); ++i) {
      used = used || uses_[result(op, i)] > 0;
    }
    if (used) continue;
    dead_[op] = 1;
    changed_ = true;
    for (ValueId value : function().operands(op)) {
      value = Resolve(value);
      if (--uses_[value] == 0 && producer(value).valid()) open.push_back(producer(value));
    }
  }
}

ValueId Rewriter::Resolve(ValueId value) {
  while (replaced_[value].valid()) value = replaced_[value];
  return value;
}

void Rewriter::ResolveOperands(OpId op) {
  const size_t count = operand_count(op);
  for (size_t i = 0; i < count; ++i) {
    const ValueId value = operand(op, i);
    if (replaced_[value].valid()) builder_.function().SetOperand(op, i, Resolve(value));
  }
}

absl::Status Rewriter::Walk(const Rule& rule) {
  const std::vector<OpId> order = function().order();
  order_.reserve(order.size());
  for (const OpId op : order) {
    if (!is_alive(op)) continue;
    ResolveOperands(op);
    rule(*this, op);
    ORRERY_RETURN_IF_ERROR(builder_.status());
    if (is_alive(op)) Place(op);
  }
  return absl::OkStatus();
}

void Rewriter::Finish() {
  std::vector<OpId> alive;
  alive.reserve(order_.size());
  for (const OpId op : order_) {
    if (!is_alive(op)) continue;
    ResolveOperands(op);
    alive.push_back(op);
  }
  builder_.function().SetOrder(std::move(alive));
  std::vector<ir::Output> outputs = function().outputs();
  for (ir::Output& output : outputs) output.value = Resolve(output.value);
  builder_.function().SetOutputs(std::move(outputs));
}

absl::StatusOr<bool> Rewrite(Function& function, const Rewriter::Rule& rule) {
  if (!function.mesh().empty()) return false;
  const std::vector<OpId> order = function.order();
  Rewriter rewriter(std::move(function));
  const absl::Status status = rewriter.Walk(rule);
  if (status.ok() && rewriter.changed_) {
    rewriter.Finish();
  } else {
    rewriter.builder_.function().SetOrder(order);
  }
  function = std::move(rewriter.builder_.function());
  if (!status.ok()) return status;
  ir::RemoveDeadOps(function);  // what a rule appended and found no use for
  return rewriter.changed_;
}

}  // namespace orrery::transforms
