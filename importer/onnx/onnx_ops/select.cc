#include <cmath>
#include <limits>
#include <optional>

#include "absl/strings/str_cat.h"
#include "importer/onnx/onnx_op.h"
#include "importer/onnx/onnx_type.h"
#include "ir/op_kind.h"
#include "support/status.h"

// Choices between elements, and changes of the element type.

namespace orrery::importer {
namespace select_cc {
namespace {

constexpr double kBeyond = std::numeric_limits<float>::max();  // the default of old files: no bound

absl::Status LowerWhere(NodeContext& c) {
  return c.Return(c.Op(ir::OpKind::kWhere, {c.input(0), c.input(1), c.input(2)}));
}

absl::Status CastTo(NodeContext& c, ir::DType dtype) {
  if (c.input_type(0).dtype == dtype) return c.Return(c.input(0));
  return c.Return(
      c.Op(ir::OpKind::kCast, {c.input(0)}, {{"to", std::string(ir::ToString(dtype))}}));
}

absl::Status LowerCast(NodeContext& c) {
  const int64_t to = c.Int("to", 0);
  const bool is_int = to > 0 && to <= std::numeric_limits<int>::max();
  ORRERY_ASSIGN_OR_RETURN(const ir::DType dtype, ElementType(is_int ? static_cast<int>(to) : 0));
  return CastTo(c, dtype);
}

absl::Status LowerCastLike(NodeContext& c) { return CastTo(c, c.input_type(1).dtype); }

// A bound that is one number and finite, which the IR's Clip can have as an attribute.
std::optional<double> BoundOf(NodeContext& c, int i) {
  const ir::Tensor* const known = c.KnownInput(i);
  if (known == nullptr || known->size() != 1 || !std::isfinite(known->Number(0))) {
    return std::nullopt;
  }
  return known->Number(0);
}

// With numbers as bounds one Clip.
absl::StatusOr<ir::ValueId> ClipByNumbers(NodeContext& c, double least, double most) {
  ir::AttributeSet attributes;
  if (least > -kBeyond) attributes.Set("min", least);
  if (most < kBeyond) attributes.Set("max", most);
  if (attributes.empty()) return c.input(0);
  return c.Op(ir::OpKind::kClip, {c.input(0)}, attributes);
}

// With tensors as bounds, or on whole numbers, whose bounds may be no doubles: Max and Min.
absl::StatusOr<ir::ValueId> ClipByTensors(NodeContext& c) {
  ir::ValueId y = c.input(0);
  if (c.has_input(1)) {
    ORRERY_ASSIGN_OR_RETURN(y, c.Op(ir::OpKind::kMax, {y, c.input(1)}));
  }
  if (c.has_input(2)) {
    ORRERY_ASSIGN_OR_RETURN(y, c.Op(ir::OpKind::kMin, {y, c.input(2)}));
  }
  return y;
}

// Before opset 11 the bounds were attributes.
absl::Status LowerClip(NodeContext& c) {
  double bounds[] = {-kBeyond, kBeyond};
  if (c.opset() < 11) {
    bounds[0] = c.Float("min", bounds[0]);
    bounds[1] = c.Float("max", bounds[1]);
    if (std::isnan(bounds[0]) || std::isnan(bounds[1])) {
      return absl::InvalidArgumentError("a bound is not a number; wanted min and max as numbers");
    }
    return c.Return(ClipByNumbers(c, bounds[0], bounds[1]));
  }
  bool numbers = ir::IsFloat(c.input_type(0).dtype);
  for (int i = 1; i <= 2; ++i) {
    if (!c.has_input(i)) continue;
    const std::optional<double> bound = BoundOf(c, i);
    numbers = numbers && bound.has_value();
    bounds[i - 1] = bound.value_or(0);
  }
  return c.Return(numbers ? ClipByNumbers(c, bounds[0], bounds[1]) : ClipByTensors(c));
}

}  // namespace
}  // namespace select_cc

extern const OnnxOp kWhereOnnxOp = {.type = "Where", .inputs = 3, .lower = select_cc::LowerWhere};

// Before opset 6 the attribute `to` was a string.
extern const OnnxOp kCastOnnxOp = {.type = "Cast", .since_opset = 6, .lower = select_cc::LowerCast};

extern const OnnxOp kCastLikeOnnxOp = {
    .type = "CastLike", .inputs = 2, .lower = select_cc::LowerCastLike};

extern const OnnxOp kClipOnnxOp = {.type = "Clip", .lower = select_cc::LowerClip};

}  // namespace orrery::importer
