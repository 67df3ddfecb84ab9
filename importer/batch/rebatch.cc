#include "importer/batch/rebatch.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>
#include <vector>

#include "importer/batch/batch_positions.h"
#include "ir/batch.h"
#include "ir/copy.h"
#include "ir/dead_code.h"
#include "ir/op_info.h"
#include "ir/op_kind.h"
#include "ir/ops/movement.h"
#include "support/check.h"
#include "support/status.h"

namespace orrery::importer {
namespace rebatch_cc {
namespace {

using ir::AttributeSet;
using ir::Function;
using ir::OpId;
using ir::OpKind;
using ir::ValueId;

// Copies a function with what BatchPositions has found.
class Rewriter {
 public:
  Rewriter(const Function& from, const BatchPositions& positions)
      : from_(from),
        positions_(positions),
        to_(from.name(), from.mesh()),
        copy_{.from = from, .to = to_} {}

  Function Run() && {
    for (const ir::Input& input : from_.inputs()) ir::CopyInput(input, input.role, copy_);
    for (const OpId op : from_.order()) Copy(op);
    ir::CopyOutputs(from_.outputs(), copy_);
    ir::RemoveDeadOps(to_);  // constants that have given way to a row of theirs
    return std::move(to_);
  }

 private:
  void Copy(OpId op) {
    std::vector<ValueId> operands;
    for (size_t k = 0; k < from_.operands(op).size(); ++k) {
      const std::optional<size_t> dim = positions_.ExpandedDim(op, k);
      const ValueId operand = from_.operands(op)[k];
      operands.push_back(dim.has_value() ? Expanded(operand, *dim) : copy_.values[operand]);
    }
    if (positions_.IsDropped(op) && !IsOutput(from_.result(op))) {
      copy_.values[from_.result(op)] = operands[0];
      return;
    }
    ir::CopyOp(op, operands, positions_.AttributesOf(op), copy_);
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
    ValueId row = copy_.values[value];
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

  const Function& from_;
  const BatchPositions& positions_;
  Function to_;
  ir::FunctionCopy copy_;
  std::map<std::pair<int32_t, size_t>, ValueId> expanded_;  // by value and dimension
};

bool IsMultiple(int64_t n, int64_t batch) { return n > 0 && n != ir::kToTheEnd && n % batch == 0; }

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
}  // namespace rebatch_cc

absl::StatusOr<ir::Function> MakeBatchFree(const ir::Function& function, BatchSize size) {
  if (ir::BatchOf(function) == 0) return function;
  absl::Status first;
  for (const BatchInReshape in_reshape :
       {BatchInReshape::kByRank, BatchInReshape::kFirst, BatchInReshape::kOutside}) {
    BatchPositions positions(function, size, in_reshape);
    const absl::Status found = positions.Find();
    if (found.ok()) return rebatch_cc::Rewriter(function, positions).Run();
    if (first.ok()) first = found;
  }
  return first;
}

std::optional<ir::OpId> ComputesWithBatch(const ir::Function& function, int64_t batch) {
  for (const ir::OpId op : function.order()) {
    if (function.info(op).is_loss || function.info(op).seeds_backward) continue;
    const ir::AttributeSet& attributes = function.attributes(op);
    const auto made = static_cast<size_t>(attributes.Int("batch_dim", -1));
    if (attributes.Int("over_batch", 0) != 0) continue;  // a share that follows the batch
    for (const auto& [name, value] : attributes.attributes()) {
      if (rebatch_cc::AnyMultiple(value, batch, name == "shape" ? made : static_cast<size_t>(-1)))
        return op;
    }
  }
  return std::nullopt;
}

}  // namespace orrery::importer
