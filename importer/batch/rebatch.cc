#include "importer/batch/rebatch.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <string>
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
        views_behind_(positions.ViewsMove() ? 1 : 0),
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
      const bool counts = positions_.CountsSamples(op, k);
      operands.push_back(counts            ? NumbersOfSamples(operand)
                         : dim.has_value() ? Expanded(operand, *dim)
                                           : copy_.values[operand]);
    }
    if (positions_.IsDropped(op) && !IsOutput(from_.result(op))) {
      copy_.values[from_.result(op)] = operands[0];
      return;
    }
    if (positions_.TakesViews(op).has_value()) return CopyOfViews(op, operands);
    ir::CopyOp(op, operands, positions_.AttributesOf(op), copy_);
  }

  // `value` with dimension `at` in two, the batch and its views: these come first, or behind each
  // sample.
  ValueId WithViews(ValueId value, size_t at, int64_t views) {
    ir::TensorType type = to_.type(value);
    type.dims[at] /= views;
    type.dims.insert(type.dims.begin() + static_cast<std::ptrdiff_t>(at + views_behind_), views);
    return Reshaped(value, std::move(type), at + 1 - views_behind_);
  }

  // Of dimension `batch` the shape does not say how large it is.
  ValueId Reshaped(ValueId value, ir::TensorType type, size_t batch, absl::string_view name = "") {
    std::vector<int64_t> shape(type.dims.begin(), type.dims.end());
    shape[batch] = -1;
    const ValueId result =
        to_.result(to_.AddOp(OpKind::kReshape, std::span(&value, 1),
                             to_.InternAttributes({{"shape", shape}}), std::span(&type, 1)));
    if (!name.empty()) to_.SetName(result, name);
    return result;
  }

  // A Concat, Slice or Split of views: with these as a dimension of their own, it leaves the batch
  // alone.
  void CopyOfViews(OpId op, std::vector<ValueId> operands) {
    const BatchPosition position = *positions_.TakesViews(op);
    const auto at = static_cast<size_t>(position.dim);
    for (size_t k = 0; k < operands.size(); ++k) {
      operands[k] = WithViews(operands[k], at, positions_.PositionOfOperand(op, k).outer);
    }
    AttributeSet attributes = from_.attributes(op);
    const int64_t view = to_.type(operands[0]).dims[at + 1 - views_behind_];
    for (const char* list : {"sizes", "starts", "ends", "axes"}) {
      std::vector<int64_t> numbers = attributes.Ints(list);
      const std::vector<int64_t> axes = from_.attributes(op).Ints("axes");
      for (size_t i = 0; i < numbers.size(); ++i) {
        if (list == std::string("axes")) {
          const bool behind =
              numbers[i] == position.dim ? views_behind_ == 1 : numbers[i] > position.dim;
          numbers[i] += behind ? 1 : 0;
        } else if (axes.empty() || axes[i] == position.dim) {
          numbers[i] = numbers[i] == ir::kToTheEnd ? numbers[i] : numbers[i] / view;
        }
      }
      if (!numbers.empty()) attributes.Set(list, numbers);
    }
    if (from_.kind(op) != OpKind::kSlice) {
      attributes.Set("axis", static_cast<int64_t>(at + views_behind_));
    }
    std::vector<ir::TensorType> types;
    for (int32_t j = 0; j < from_.result_count(op); ++j) {
      types.push_back(from_.type(from_.result(op, j)));
      ir::Dims& dims = types.back().dims;
      const int64_t views = dims[at] / view;
      dims[at] = view;
      dims.insert(dims.begin() + static_cast<std::ptrdiff_t>(at + views_behind_), views);
    }
    const OpId made = to_.AddOp(from_.kind(op), operands, to_.InternAttributes(attributes), types);
    for (int32_t j = 0; j < from_.result_count(op); ++j) {
      const ValueId result = from_.result(op, j);
      copy_.values[result] =
          Reshaped(to_.result(made, j), from_.type(result), at, from_.value_name(result));
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

  // 0, 1, 2, …, of the type of `value`: how many ones stand before each.
  ValueId NumbersOfSamples(ValueId value) {
    const ir::TensorType type = from_.type(value);
    ir::TensorType one = type;
    one.dims = {1};
    const auto add = [&](OpKind kind, std::span<const ValueId> operands,
                         const AttributeSet& attributes, const ir::TensorType& of) {
      return to_.result(
          to_.AddOp(kind, operands, to_.InternAttributes(attributes), std::span(&of, 1)));
    };
    ValueId made = add(OpKind::kConstant, {}, {{"fill", int64_t{1}}}, one);
    made = add(OpKind::kExpand, std::span(&made, 1),
               {{"shape", std::vector<int64_t>{type.dims[0]}}, {"batch_dim", int64_t{0}}}, type);
    return add(OpKind::kCumSum, std::span(&made, 1),
               {{"axis", int64_t{0}}, {"exclusive", int64_t{1}}}, type);
  }

  const Function& from_;
  const BatchPositions& positions_;
  size_t views_behind_;  // 1: views of a sample stand together, so that parts of the batch have all
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

// A model of a hundred layers asks once for each; one that cannot be followed asks in vain.
constexpr int kMostTries = 256;

// Finds positions with Reshapes that choose for themselves: where the search fails, the nearest
// Reshapes before it choose otherwise, and a choice stays with which the search goes further.
std::optional<BatchPositions> ChooseInReshapes(const Function& function, BatchSearch search) {
  std::optional<BatchPositions> best(std::in_place, function, search);
  if (best->Find().ok()) return best;
  int tries = 0;
  for (bool further = true; further;) {
    further = false;
    for (const auto& [op, possible] : best->OtherChoices()) {
      for (size_t choice = 0; choice < possible && !further; ++choice) {
        BatchSearch changed = search;
        if (std::exchange(changed.choices[op.index()], choice) == choice) continue;
        if (++tries > kMostTries) return std::nullopt;
        BatchPositions positions(function, changed);
        if (positions.Find().ok()) return positions;
        if (positions.failed_step() <= best->failed_step()) continue;
        best.emplace(std::move(positions));
        search = std::move(changed);
        further = true;
      }
      if (further) break;
    }
  }
  return std::nullopt;
}

// The first of several ways to look that finds all there is. Of a file of one sample first those
// that lose it nowhere.
absl::StatusOr<BatchPositions> FindBatch(const Function& function, BatchSize size) {
  absl::Status first;
  for (const bool keeps : {true, false}) {
    if (keeps && (size == BatchSize::kRare || ir::BatchOf(function) > 1)) continue;
    BatchSearch search = {.size = size, .keeps_outputs = keeps};
    for (const BatchInReshape in_reshape :
         {BatchInReshape::kByRank, BatchInReshape::kFirst, BatchInReshape::kOutside}) {
      search.in_reshape = in_reshape;
      BatchPositions positions(function, search);
      const absl::Status found = positions.Find();
      if (found.ok()) return positions;
      if (first.ok() && !keeps) first = found;
    }
    if (size == BatchSize::kRare) continue;  // no other dimension can be its multiple
    search.in_reshape = BatchInReshape::kByRank;
    if (auto positions = ChooseInReshapes(function, search)) return *std::move(positions);
  }
  return first;
}

}  // namespace
}  // namespace rebatch_cc

absl::StatusOr<ir::Function> MakeBatchFree(const ir::Function& function, BatchSize size) {
  if (ir::BatchOf(function) == 0) return function;
  ORRERY_ASSIGN_OR_RETURN(const BatchPositions positions, rebatch_cc::FindBatch(function, size));
  return rebatch_cc::Rewriter(function, positions).Run();
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
