#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "importer/onnx/onnx_op.h"
#include "importer/onnx/onnx_ops/windows.h"
#include "ir/op_kind.h"
#include "support/status.h"

// Products of quantized numbers: whole ones in i32 for those that end in -Integer, and real ones
// between dequantization and quantization for those that begin with QLinear-.

namespace orrery::importer {
namespace quantized_products_cc {
namespace {

using ir::OpKind;
using ir::ValueId;

// The value in i32, less its zero point `zero` when that is there. A vector of zero points goes
// along dimension `axis`.
absl::StatusOr<ValueId> Centered(NodeContext& c, int input, int zero, size_t axis) {
  const size_t rank = c.input_type(input).dims.size();
  ORRERY_ASSIGN_OR_RETURN(const ValueId value,
                          c.Op(OpKind::kCast, {c.input(input)}, {{"to", "i32"}}));
  if (!c.has_input(zero)) return value;
  ORRERY_ASSIGN_OR_RETURN(ValueId point, c.Op(OpKind::kCast, {c.input(zero)}, {{"to", "i32"}}));
  if (c.type(point).dims.size() == 1 && axis < rank) {
    std::vector<int64_t> added;
    for (size_t d = axis + 1; d < rank; ++d) added.push_back(static_cast<int64_t>(d - axis));
    ORRERY_ASSIGN_OR_RETURN(point, c.Op(OpKind::kUnsqueeze, {point}, {{"axes", added}}));
  }
  return c.Op(OpKind::kSub, {value, point});
}

absl::Status LowerMatMulInteger(NodeContext& c) {
  const size_t x_rank = c.input_type(0).dims.size(), w_rank = c.input_type(1).dims.size();
  if (x_rank < 2 || w_rank < 2) {
    return absl::InvalidArgumentError(
        absl::StrCat("inputs have ", x_rank, " and ", w_rank, " dimensions; wanted at least 2"));
  }
  ORRERY_ASSIGN_OR_RETURN(const ValueId x, Centered(c, 0, 2, x_rank - 2));
  ORRERY_ASSIGN_OR_RETURN(const ValueId w, Centered(c, 1, 3, w_rank - 1));
  return c.Return(c.Op(OpKind::kMatMul, {x, w}));
}

absl::StatusOr<ir::AttributeSet> ConvAttributes(NodeContext& c, int x, int w) {
  ORRERY_ASSIGN_OR_RETURN(const ir::Dims input, SpatialInput(c, x));
  ORRERY_ASSIGN_OR_RETURN(const ir::Dims weight, SpatialInput(c, w));
  const std::vector<int64_t> kernel(weight.begin(), weight.end());
  ORRERY_ASSIGN_OR_RETURN(ir::AttributeSet attributes, WindowAttributes(c, kernel, input));
  attributes.Set("group", c.Int("group", 1));
  return attributes;
}

absl::Status LowerConvInteger(NodeContext& c) {
  ORRERY_ASSIGN_OR_RETURN(const ir::AttributeSet attributes, ConvAttributes(c, 0, 1));
  ORRERY_ASSIGN_OR_RETURN(const ValueId x, Centered(c, 0, 2, 1));
  ORRERY_ASSIGN_OR_RETURN(const ValueId w, Centered(c, 1, 3, 0));
  return c.Return(c.Op(OpKind::kConv, {x, w}, attributes));
}

// Inputs i, i + 1 and i + 2 are numbers, their scale and their zero point. A vector of scales goes
// along dimension `axis`.
absl::StatusOr<ValueId> Dequantized(NodeContext& c, int i, int64_t axis) {
  ir::AttributeSet attributes;
  if (ir::ElementCount(c.input_type(i + 1).dims) != 1) attributes.Set("axis", axis);
  return c.Op(OpKind::kDequantizeLinear, {c.input(i), c.input(i + 1), c.input(i + 2)}, attributes);
}

// The scale is input i, the zero point input i + 1, of the type of the result.
absl::Status ReturnQuantized(NodeContext& c, ValueId value, int i) {
  const std::string to(ir::ToString(c.input_type(i + 1).dtype));
  return c.Return(c.Op(OpKind::kQuantizeLinear, {value, c.input(i), c.input(i + 1)}, {{"to", to}}));
}

absl::Status LowerQLinearMatMul(NodeContext& c) {
  const auto x_rank = static_cast<int64_t>(c.input_type(0).dims.size());
  const auto w_rank = static_cast<int64_t>(c.input_type(3).dims.size());
  if (x_rank < 2 || w_rank < 2) {
    return absl::InvalidArgumentError(
        absl::StrCat("inputs have ", x_rank, " and ", w_rank, " dimensions; wanted at least 2"));
  }
  ORRERY_ASSIGN_OR_RETURN(const ValueId x, Dequantized(c, 0, x_rank - 2));
  ORRERY_ASSIGN_OR_RETURN(const ValueId w, Dequantized(c, 3, w_rank - 1));
  ORRERY_ASSIGN_OR_RETURN(const ValueId y, c.Op(OpKind::kMatMul, {x, w}));
  return ReturnQuantized(c, y, 6);
}

// The bias is in i32, at the scale of the products.
absl::StatusOr<ValueId> DequantizedBias(NodeContext& c) {
  ORRERY_ASSIGN_OR_RETURN(const ValueId scale, c.Op(OpKind::kMul, {c.input(1), c.input(4)}));
  ORRERY_ASSIGN_OR_RETURN(
      const ValueId bias,
      c.Op(OpKind::kCast, {c.input(8)}, {{"to", std::string(ir::ToString(c.type(scale).dtype))}}));
  return c.Op(OpKind::kMul, {bias, scale});
}

absl::Status LowerQLinearConv(NodeContext& c) {
  ORRERY_ASSIGN_OR_RETURN(const ir::AttributeSet attributes, ConvAttributes(c, 0, 3));
  ORRERY_ASSIGN_OR_RETURN(const ValueId x, Dequantized(c, 0, 1));
  ORRERY_ASSIGN_OR_RETURN(const ValueId w, Dequantized(c, 3, 0));
  std::vector<ValueId> operands = {x, w};
  if (c.has_input(8)) {
    ORRERY_ASSIGN_OR_RETURN(const ValueId bias, DequantizedBias(c));
    operands.push_back(bias);
  }
  ORRERY_ASSIGN_OR_RETURN(const ValueId y, c.Op(OpKind::kConv, operands, attributes));
  return ReturnQuantized(c, y, 6);
}

}  // namespace
}  // namespace quantized_products_cc

extern const OnnxOp kMatMulIntegerOnnxOp = {.type = "MatMulInteger",
                                            .inputs = 2,
                                            .weights = 0b10,
                                            .lower = quantized_products_cc::LowerMatMulInteger};
extern const OnnxOp kConvIntegerOnnxOp = {.type = "ConvInteger",
                                          .inputs = 2,
                                          .weights = 0b10,
                                          .lower = quantized_products_cc::LowerConvInteger};
extern const OnnxOp kQLinearMatMulOnnxOp = {
    .type = "QLinearMatMul", .inputs = 8, .lower = quantized_products_cc::LowerQLinearMatMul};
extern const OnnxOp kQLinearConvOnnxOp = {
    .type = "QLinearConv", .inputs = 8, .lower = quantized_products_cc::LowerQLinearConv};

}  // namespace orrery::importer
