#include "ir/ops/movement.h"

#include <algorithm>

namespace orrery::ir {

int64_t SizeProduct(int64_t a, int64_t b) {
  int64_t product = 0;
  if (__builtin_mul_overflow(a, b, &product)) return kTooLarge;
  return std::min(product, kTooLarge);
}

int64_t SizeSum(int64_t a, int64_t b) {
  int64_t sum = 0;
  if (__builtin_add_overflow(a, b, &sum)) return kTooLarge;
  return std::min(sum, kTooLarge);
}

int64_t CheckedCount(const std::vector<int64_t>& dims) {
  if (std::find(dims.begin(), dims.end(), 0) != dims.end()) return 0;
  int64_t count = 1;
  for (const int64_t dim : dims) count = SizeProduct(count, dim);
  return count;
}

int64_t GatheredBytes(const OpTypes& op, const TypeList& results) {
  return 2 * SizeOf(results[0]).count() + SizeOf(*op.operands[1]).count();
}

absl::Status CheckAxes(const std::vector<int64_t>& axes, size_t rank) {
  std::vector<bool> seen(rank, false);
  for (const int64_t axis : axes) {
    if (axis < 0 || axis >= static_cast<int64_t>(rank)) {
      return absl::InvalidArgumentError(
          absl::StrCat("axis ", axis, " is none of the ", rank, " dimensions"));
    }
    if (seen[static_cast<size_t>(axis)]) {
      return absl::InvalidArgumentError(
          absl::StrCat("axes=[", absl::StrJoin(axes, ","), "] names ", axis, " twice"));
    }
    seen[static_cast<size_t>(axis)] = true;
  }
  return absl::OkStatus();
}

absl::Status CheckAxis(const AttributeSet& attributes, size_t rank) {
  return CheckAxes({attributes.Int("axis", 0)}, rank);
}

absl::Status CheckLists(const AttributeSet& attributes,
                        std::initializer_list<absl::string_view> names, int64_t least) {
  const size_t count = attributes.Ints("axes").size();
  for (const absl::string_view name : names) {
    const std::vector<int64_t> list = attributes.Ints(name);
    const auto low = std::find_if(list.begin(), list.end(), [&](int64_t n) { return n < least; });
    if (list.size() == count && low == list.end()) continue;
    return absl::InvalidArgumentError(absl::StrCat(name, "=[", absl::StrJoin(list, ","),
                                                   "]; wanted one number of at least ", least,
                                                   " for each of the ", count, " axes"));
  }
  return absl::OkStatus();
}

std::optional<size_t> PositionOf(const std::vector<int64_t>& axes, size_t dim) {
  const auto found = std::find(axes.begin(), axes.end(), static_cast<int64_t>(dim));
  if (found == axes.end()) return std::nullopt;
  return static_cast<size_t>(found - axes.begin());
}

absl::Status AddResult(const OpTypes& op, Dims dims, TypeList& results, size_t like) {
  results.push_back({.dtype = op.operands[like]->dtype, .dims = std::move(dims), .sharding = {}});
  return absl::OkStatus();
}

ShardingRule SplitOtherDims(const OpTypes& op, const TypeList& results,
                            const std::vector<int64_t>& whole) {
  ShardingRule::Factors row;
  for (size_t d = 0; d < op.operands[0]->dims.size(); ++d) {
    row.push_back(PositionOf(whole, d).has_value() ? kNoFactor : static_cast<int8_t>(d));
  }
  ShardingRule rule{.operands = {row}, .results = {}};
  for (size_t j = 0; j < results.size(); ++j) rule.results.push_back(row);
  return rule;
}

ShardingRule SplitUntouchedDims(const OpTypes& op, const TypeList& results) {
  std::vector<int64_t> whole = op.attributes.Ints("axes");
  if (op.attributes.Find("axes") == nullptr) whole.push_back(op.attributes.Int("axis", 0));
  return SplitOtherDims(op, results, whole);
}

absl::Status CheckIndices(const TensorType& ids) {
  if (ids.dtype == DType::kI64 || ids.dtype == DType::kI32) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("the indices are ", ToString(ids.dtype), "; wanted i32 or i64"));
}

absl::StatusOr<int64_t> IndexAt(const Tensor& indices, int64_t i, int64_t size) {
  const int64_t index = indices.ints()[static_cast<size_t>(i)];
  if (index >= -size && index < size) return index < 0 ? index + size : index;
  return absl::OutOfRangeError(
      absl::StrCat("index ", index, " is no position in a dimension of ", size));
}

absl::StatusOr<int64_t> HeldIndexAt(const Tensor& indices, int64_t i, const HeldPositions& held) {
  ORRERY_ASSIGN_OR_RETURN(const int64_t index, IndexAt(indices, i, held.whole));
  return index - held.first;
}

void AddElement(Tensor& sum, int64_t to, const Tensor& other, int64_t from) {
  const auto t = static_cast<size_t>(to), f = static_cast<size_t>(from);
  if (sum.is_float()) {
    sum.floats()[t] += other.floats()[f];
  } else {
    sum.ints()[t] = static_cast<int64_t>(static_cast<uint64_t>(sum.ints()[t]) +
                                         static_cast<uint64_t>(other.ints()[f]));
  }
}

double OneFlopALastElement(const OpTypes& op, const TypeList&) {
  return static_cast<double>(ElementCount(op.operands.back()->dims));
}

double OneFlopAFirstElement(const OpTypes& op, const TypeList&) {
  return static_cast<double>(ElementCount(op.operands[0]->dims));
}

absl::Status SetGradientOp(GradientContext& c, int i, OpKind kind, const AttributeSet& attributes) {
  c.SetOperandGradient(i,
                       c.builder().Op(kind, {c.result_gradient()}, c.GradientName(i), attributes));
  return c.builder().status();
}

}  // namespace orrery::ir
