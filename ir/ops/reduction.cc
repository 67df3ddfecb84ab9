#include "ir/ops/reduction.h"

#include <algorithm>

namespace orrery::ir {
namespace reduction_cc {
namespace {

constexpr absl::string_view kReductions[] = {"none", "add", "mul", "max", "min"};

// Numbers wrap around where their type does.
int64_t WrappedProduct(int64_t a, int64_t b) {
  return static_cast<int64_t>(static_cast<uint64_t>(a) * static_cast<uint64_t>(b));
}

}  // namespace
}  // namespace reduction_cc

absl::Status CheckReduction(const AttributeSet& attributes) {
  const std::string reduction = attributes.String("reduction", "none");
  const auto end = std::end(reduction_cc::kReductions);
  if (std::find(std::begin(reduction_cc::kReductions), end, reduction) != end)
    return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("reduction=\"", reduction, "\"; wanted one of ",
                                                 absl::StrJoin(reduction_cc::kReductions, ", ")));
}

void Update(Tensor& y, int64_t to, const Tensor& updates, int64_t from,
            absl::string_view reduction) {
  const auto t = static_cast<size_t>(to), f = static_cast<size_t>(from);
  if (reduction == "add") {
    AddElement(y, to, updates, from);
  } else if (reduction == "mul" && y.is_float()) {
    y.floats()[t] *= updates.floats()[f];
  } else if (reduction == "mul") {
    y.ints()[t] = reduction_cc::WrappedProduct(y.ints()[t], updates.ints()[f]);
  } else if ((reduction == "max" && y.Number(to) >= updates.Number(from)) ||
             (reduction == "min" && y.Number(to) <= updates.Number(from))) {
    return;
  } else {
    y.CopyElement(to, updates, from);
  }
}

absl::Status CheckScatter(const OpTypes& op, const Dims& updates) {
  ORRERY_RETURN_IF_ERROR(CheckIndices(*op.operands[1]));
  ORRERY_RETURN_IF_ERROR(CheckReduction(op.attributes));
  constexpr size_t kMaxRank = 30;
  if (op.operands.size() == 2 && updates.size() <= kMaxRank) return absl::OkStatus();
  if (op.operands.size() == 2) {
    return absl::InvalidArgumentError(absl::StrCat("writes slices of ", updates.size(),
                                                   " dimensions; wanted at most ", kMaxRank));
  }
  const TensorType& given = *op.operands[2];
  if (given.dims == updates && given.dtype == op.operands[0]->dtype) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("the updates are ", ToString(given, op.mesh),
                                                 "; wanted ", ToString(op.operands[0]->dtype),
                                                 Show(updates)));
}

double ScatterFlops(const OpTypes& op, const TypeList& results) {
  const bool writes = op.attributes.String("reduction", "none") == "none";
  return writes ? 0 : OneFlopALastElement(op, results);
}

absl::Status ScatterGradient(GradientContext& c, OpKind kind, OpKind gather,
                             const AttributeSet& positions) {
  const std::string reduction = c.attributes().String("reduction", "none");
  if (reduction != "none" && reduction != "add") {
    return absl::UnimplementedError(
        absl::StrCat("has no gradient with reduction=\"", reduction, "\"; wanted none or add"));
  }
  const ValueId dy = c.result_gradient(), ids = c.operand(1);
  if (c.needs(0)) {
    AttributeSet cleared = positions;
    cleared.Set("value", int64_t{0});
    c.SetOperandGradient(
        0, reduction == "add" ? dy : c.builder().Op(kind, {dy, ids}, c.GradientName(0), cleared));
  }
  if (c.operand_count() == 3 && c.needs(2)) {
    c.SetOperandGradient(2, c.builder().Op(gather, {dy, ids}, c.GradientName(2), positions));
  }
  return c.builder().status();
}

}  // namespace orrery::ir
