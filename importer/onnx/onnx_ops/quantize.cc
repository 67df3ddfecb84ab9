#include <limits>
#include <string>
#include <vector>

#include "importer/onnx/onnx_op.h"
#include "importer/onnx/onnx_type.h"
#include "ir/op_kind.h"
#include "support/status.h"

// Between real numbers and whole ones.

namespace orrery::importer {
namespace quantize_cc {
namespace {

using ir::OpKind;
using ir::ValueId;

std::vector<ValueId> Operands(const NodeContext& c) {
  std::vector<ValueId> operands = {c.input(0), c.input(1)};
  if (c.has_input(2)) operands.push_back(c.input(2));
  return operands;
}

// Along which dimension the scales go, when they are several, and in which blocks.
ir::AttributeSet Placement(NodeContext& c) {
  ir::AttributeSet attributes;
  const int64_t block = c.Int("block_size", 0);
  if (block > 0) attributes.Set("block_size", block);
  if (block > 0 || ir::ElementCount(c.input_type(1).dims) != 1) {
    attributes.Set("axis", c.Int("axis", 1));
  }
  return attributes;
}

// The zero point has the type of the result; without one an attribute says it since opset 21.
absl::StatusOr<ir::DType> QuantizedType(NodeContext& c) {
  if (c.has_input(2)) return c.input_type(2).dtype;
  const int64_t given = c.Int("output_dtype", 0);
  if (given == 0) return ir::DType::kU8;
  const bool is_int = given > 0 && given <= std::numeric_limits<int>::max();
  return ElementType(is_int ? static_cast<int>(given) : 0);
}

absl::Status LowerQuantizeLinear(NodeContext& c) {
  ORRERY_ASSIGN_OR_RETURN(const ir::DType dtype, QuantizedType(c));
  ir::AttributeSet attributes = Placement(c);
  attributes.Set("to", std::string(ir::ToString(dtype)));
  return c.Return(c.Op(OpKind::kQuantizeLinear, Operands(c), attributes));
}

absl::Status LowerDequantizeLinear(NodeContext& c) {
  return c.Return(c.Op(OpKind::kDequantizeLinear, Operands(c), Placement(c)));
}

// The least or greatest element, or zero where that is beyond it.
absl::StatusOr<ValueId> Extreme(NodeContext& c, OpKind reduce, OpKind choose, ValueId zero) {
  std::vector<int64_t> axes;
  for (size_t d = 0; d < c.input_type(0).dims.size(); ++d) axes.push_back(static_cast<int64_t>(d));
  ORRERY_ASSIGN_OR_RETURN(const ValueId extreme, c.Op(reduce, {c.input(0)}, {{"axes", axes}}));
  return c.Op(choose, {extreme, zero});
}

// To u8, with a scale that spans all elements and zero.
absl::Status LowerDynamicQuantizeLinear(NodeContext& c) {
  const ir::TensorType scalar = {.dtype = c.input_type(0).dtype, .dims = {}, .sharding = {}};
  ORRERY_ASSIGN_OR_RETURN(const ValueId zero, c.Constant(scalar, {{"fill", 0.0}}));
  ORRERY_ASSIGN_OR_RETURN(const ValueId levels, c.Constant(scalar, {{"fill", 255.0}}));
  ORRERY_ASSIGN_OR_RETURN(const ValueId most, Extreme(c, OpKind::kReduceMax, OpKind::kMax, zero));
  ORRERY_ASSIGN_OR_RETURN(const ValueId least, Extreme(c, OpKind::kReduceMin, OpKind::kMin, zero));
  ORRERY_ASSIGN_OR_RETURN(const ValueId range, c.Op(OpKind::kSub, {most, least}));
  ORRERY_ASSIGN_OR_RETURN(const ValueId scale, c.Op(OpKind::kDiv, {range, levels}));
  ORRERY_ASSIGN_OR_RETURN(const ValueId below, c.Op(OpKind::kNeg, {least}));
  ORRERY_ASSIGN_OR_RETURN(const ValueId zero_point,
                          c.Op(OpKind::kQuantizeLinear, {below, scale}, {{"to", "u8"}}));
  ORRERY_ASSIGN_OR_RETURN(const ValueId y, c.Op(OpKind::kQuantizeLinear,
                                                {c.input(0), scale, zero_point}, {{"to", "u8"}}));
  c.SetOutput(0, y);
  c.SetOutput(1, scale);
  c.SetOutput(2, zero_point);
  return absl::OkStatus();
}

}  // namespace
}  // namespace quantize_cc

extern const OnnxOp kQuantizeLinearOnnxOp = {
    .type = "QuantizeLinear", .inputs = 2, .lower = quantize_cc::LowerQuantizeLinear};
extern const OnnxOp kDequantizeLinearOnnxOp = {
    .type = "DequantizeLinear", .inputs = 2, .lower = quantize_cc::LowerDequantizeLinear};
extern const OnnxOp kDynamicQuantizeLinearOnnxOp = {
    .type = "DynamicQuantizeLinear", .lower = quantize_cc::LowerDynamicQuantizeLinear};

}  // namespace orrery::importer
