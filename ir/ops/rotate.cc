#include <algorithm>

#include "absl/strings/str_cat.h"
#include "ir/op_info.h"
#include "ir/tensor_parts.h"
#include "support/status.h"

// The parts of a dimension go round a ring of ranks: each sends what it has to the next one. So
// keys and values pass by all queries in ring attention (Liu et al. 2023).

namespace orrery::ir {
namespace rotate_cc {
namespace {

// x mod n, not negative.
int64_t Modulo(int64_t x, int64_t n) { return (x % n + n) % n; }

absl::Status InferRotate(const OpTypes& op, TypeList& results) {
  const TensorType& x = *op.operands[0];
  const int64_t dim = op.attributes.Int("dim", -1), parts = op.attributes.Int("parts", 0);
  if (dim < 0 || dim >= static_cast<int64_t>(x.dims.size())) {
    return absl::InvalidArgumentError(absl::StrCat("dim=", dim, " is no dimension of its operand"));
  }
  const int64_t size = x.dims[static_cast<size_t>(dim)];
  if (parts < 1 || size % parts != 0) {
    return absl::InvalidArgumentError(absl::StrCat(
        "dimension ", dim, " (", size, ") and parts=", parts, "; wanted parts that it falls into"));
  }
  results.push_back({.dtype = x.dtype, .dims = x.dims, .sharding = x.sharding});
  return absl::OkStatus();
}

// Each rank has one part, or one rank has all.
absl::Status ShardRotate(const OpTypes& op, TypeList& results) {
  AxisList axes;
  ORRERY_RETURN_IF_ERROR(ParseAxes(op.attributes, op.mesh, axes));
  const auto dim = static_cast<size_t>(op.attributes.Int("dim", 0));
  const AxisList split = results[0].sharding.at(dim);
  const int64_t parts = op.attributes.Int("parts", 0), ranks = op.mesh.size(axes);
  if (ranks == 1 && op.mesh.size(split) == 1) return absl::OkStatus();
  if (split == axes && ranks == parts) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("dimension ", dim, " of its operand is split over '", op.mesh.Names(split),
                   "'; wanted parts=", parts, " ranks along ", op.mesh.Names(axes),
                   " with one part each, or one rank with all"));
}

Tensor ExchangeRotate(const GroupExchange& exchange) {
  const int64_t parts = exchange.attributes.Int("parts", 1);
  const int64_t by = Modulo(exchange.attributes.Int("by", 1), parts);
  if (exchange.parts.size() > 1) {
    return *exchange.parts[static_cast<size_t>(Modulo(exchange.position - by, parts))];
  }
  const Tensor& whole = *exchange.parts[0];
  const auto dim = static_cast<size_t>(exchange.attributes.Int("dim", 0));
  Tensor rotated = whole;
  for (int64_t part = 0; part < parts; ++part) {
    PastePart(SlicePart(whole, dim, Modulo(part - by, parts), parts), dim, part, rotated);
  }
  return rotated;
}

}  // namespace
}  // namespace rotate_cc

extern const OpInfo kRotateOp = {
    .name = "Rotate",
    .summary =
        "of the `parts` parts of dimension `dim`, one a rank along `axes`, part i becomes part "
        "i + `by` (1), the last ones the first",
    .op_class = OpClass::kCollective,
    .operands = 1,
    .infer = rotate_cc::InferRotate,
    .infer_sharding = rotate_cc::ShardRotate,
    .exchange = rotate_cc::ExchangeRotate,
};

}  // namespace orrery::ir
