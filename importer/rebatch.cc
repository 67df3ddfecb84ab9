#include "importer/rebatch.h"

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "importer/batch_places.h"
#include "ir/batch.h"
#include "support/check.h"
#include "support/status.h"

namespace orrery::importer {
namespace {

using ir::AttributeSet;
using ir::Function;
using ir::OpId;
using ir::OpKind;
using ir::ValueId;

// Copies a function with what BatchPlaces has found.
class Rewriter {
 public:
  Rewriter(const Function& from, const BatchPlaces& places)
      : from_(from), places_(places), to_(from.name(), from.mesh()), copies_(from.value_limit()) {}

  Function Run() && {
    for (const ir::Input& input : from_.inputs()) {
      copies_[input.value] =
          to_.AddInput(from_.value_name(input.value), from_.type(input.value), input.role);
    }
    for (const OpId op : from_.order()) Copy(op);
    for (const ir::Output& output : from_.outputs()) {
      to_.AddOutput({.value = copies_[output.value],
                     .role = output.role,
                     .of = output.of.valid() ? copies_[output.of] : ValueId()});
    }
    DropDeadOps();
    return std::move(to_);
  }

 private:
  void Copy(OpId op) {
    std::vector<ValueId> operands;
    for (size_t k = 0; k < from_.operands(op).size(); ++k) {
      const std::optional<size_t> dim = places_.ExpandedDim(op, k);
      const ValueId operand = from_.operands(op)[k];
      operands.push_back(dim.has_value() ? Expanded(operand, *dim) : copies_[operand]);
    }
    if (places_.IsDropped(op) && !IsOutput(from_.result(op))) {
      copies_[from_.result(op)] = operands[0];
      return;
    }
    std::vector<ir::TensorType> types;
    std::vector<absl::string_view> names;
    for (int32_t j = 0; j < from_.result_count(op); ++j) {
      types.push_back(from_.type(from_.result(op, j)));
      names.push_back(from_.value_name(from_.result(op, j)));
    }
    const OpId copy = to_.AddOp(from_.kind(op), operands,
                                to_.InternAttributes(places_.AttributesOf(op)), types, names);
    for (int32_t j = 0; j < from_.result_count(op); ++j) {
      copies_[from_.result(op, j)] = to_.result(copy, j);
    }
  }

  bool IsOutput(ValueId value) const {
    return std::any_of(from_.outputs().begin(), from_.outputs().end(),
                       [&](const ir::Output& output) { return output.value == value; });
  }

  // One row of `value`, repeated as often as there are samples.
  ValueId Expanded(ValueId value, size_t dim) {
    ValueId& made = expanded_[{value.index(), dim}];
    if (made.valid()) return made;
    ir::TensorType type = from_.type(value);
    std::vector<int64_t> shape(type.dims.size(), -1);
    shape[dim] = type.dims[dim];
    ValueId row = copies_[value];
    if (type.dims[dim] != 1) {
      const auto values = OneRow(from_.attributes(from_.producer(value)), type, dim);
      ORRERY_CHECK(values.has_value()) << value;
      ir::TensorType one = type;
      one.dims[dim] = 1;
      row = to_.result(
          to_.AddOp(OpKind::kConstant, {}, to_.InternAttributes(*values), std::span(&one, 1)));
    }
    const AttributeSet attributes = {{"shape", shape}, {"batch_dim", static_cast<int64_t>(dim)}};
    made = to_.result(to_.AddOp(OpKind::kExpand, std::span(&row, 1),
                                to_.InternAttributes(attributes), std::span(&type, 1)));
    return made;
  }

  // Constants that have given way to a row of theirs.
  void DropDeadOps() {
    IdTable<ValueId, int32_t> uses = ir::CountUses(to_);
    std::vector<OpId> order;
    for (size_t i = to_.order().size(); i-- > 0;) {
      const OpId op = to_.order()[i];
      bool alive = false;
      for (int32_t j = 0; j < to_.result_count(op); ++j) alive |= uses[to_.result(op, j)] > 0;
      if (alive) {
        order.push_back(op);
        continue;
      }
      for (const ValueId operand : to_.operands(op)) --uses[operand];
    }
    to_.SetOrder(std::vector<OpId>(order.rbegin(), order.rend()));
  }

  const Function& from_;
  const BatchPlaces& places_;
  Function to_;
  IdTable<ValueId, ValueId> copies_;
  std::map<std::pair<int32_t, size_t>, ValueId> expanded_;  // by value and dimension
};

bool IsMultiple(int64_t n, int64_t batch) { return n > 0 && n != INT64_MAX && n % batch == 0; }

bool AnyMultiple(const ir::Attribute& attribute, int64_t batch, size_t except) {
  if (const auto* number = std::get_if<int64_t>(&attribute)) return IsMultiple(*number, batch);
  if (const auto* numbers = std::get_if<std::vector<int64_t>>(&attribute)) {
    for (size_t i = 0; i < numbers->size(); ++i) {
      if (i != except && IsMultiple((*numbers)[i], batch)) return true;
    }
  }
  const auto real = [batch](double x) {
    if (!(x > 1e-12 && x < 1e12)) return false;
    const double n = std::round(x < 1 ? 1 / x : x);  // a mean over the samples divides by them
    const double error = x < 1 ? std::abs(n * x - 1) : std::abs(n - x);
    return error < (x < 1 ? 1e-6 : 1e-12) && static_cast<int64_t>(n) % batch == 0;
  };
  if (const auto* number = std::get_if<double>(&attribute)) return real(*number);
  if (const auto* numbers = std::get_if<std::vector<double>>(&attribute)) {
    for (const double number : *numbers) {
      if (real(number)) return true;
    }
  }
  return false;
}

}  // namespace

absl::StatusOr<Function> MakeBatchFree(const Function& function, BatchSize size) {
  if (ir::BatchOf(function) == 0) return function;
  BatchPlaces places(function, size);
  ORRERY_RETURN_IF_ERROR(places.Find());
  return Rewriter(function, places).Run();
}

bool ComputesWithBatch(const Function& function, int64_t batch) {
  for (const OpId op : function.order()) {
    if (function.info(op).is_loss || function.info(op).seeds_backward) continue;
    const AttributeSet& attributes = function.attributes(op);
    const auto made = static_cast<size_t>(attributes.Int("batch_dim", -1));
    for (const auto& [name, value] : attributes.attributes()) {
      if (AnyMultiple(value, batch, name == "shape" ? made : static_cast<size_t>(-1))) return true;
    }
  }
  return false;
}

}  // namespace orrery::importer
