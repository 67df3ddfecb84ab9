#include <algorithm>
#include <cmath>
#include <cstdint>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "importer/onnx/onnx_op.h"
#include "importer/onnx/onnx_type.h"
#include "importer/onnx/tensor_values.h"
#include "ir/op_kind.h"
#include "support/status.h"

// ONNX ops whose result follows from shapes alone: constants, once the shapes are known.

namespace orrery::importer {
namespace shape_values_cc {
namespace {

// From opset 15 on, of the dimensions from `start` to `end` alone.
absl::Status LowerShape(NodeContext& c) {
  const ir::Dims dims = c.input_type(0).dims;
  const auto rank = static_cast<int64_t>(dims.size());
  const auto position = [&](absl::string_view name, int64_t fallback) {
    const int64_t at = c.Int(name, fallback);
    return std::clamp<int64_t>(at < 0 ? at + rank : at, 0, rank);
  };
  const int64_t start = position("start", 0), end = std::max(start, position("end", rank));
  return c.Return(c.Constant(ir::Tensor::OfShape({dims.begin() + start, dims.begin() + end})));
}

absl::Status LowerSize(NodeContext& c) {
  const int64_t count = ir::ElementCount(c.input_type(0).dims);
  return c.Return(c.Constant(ir::Tensor::OfInts(ir::DType::kI64, {}, {count})));
}

absl::Status LowerConstantOfShape(NodeContext& c) {
  ORRERY_ASSIGN_OR_RETURN(const std::vector<int64_t> shape, c.IntegerInput(0));
  ir::Tensor value(ir::DType::kF32, {});
  if (const onnx::AttributeProto* attribute = c.Attribute("value"); attribute != nullptr) {
    ORRERY_ASSIGN_OR_RETURN(const ir::TensorType type, TypeOf(attribute->t()));
    ORRERY_ASSIGN_OR_RETURN(const auto tensor, TensorOf(attribute->t(), type));
    if (!tensor.has_value() || tensor->size() != 1) {
      return absl::InvalidArgumentError("the attribute value holds no element; wanted one");
    }
    value = *tensor;
  }
  const ir::TensorType type{value.dtype(), ir::Dims(shape.begin(), shape.end()), {}};
  ir::AttributeSet attributes;
  if (KeptValues(value) != ir::AttributeSet()) {
    if (value.is_float()) attributes.Set("fill", value.floats()[0]);
    if (!value.is_float()) attributes.Set("fill", value.ints()[0]);
  }
  return c.Return(c.Constant(type, attributes));
}

// 0, 1, 2, … up to a `count` that follows the batch: how many ones stand before each.
absl::StatusOr<ir::ValueId> CountSamples(NodeContext& c, ir::DType dtype, int64_t count) {
  ir::Tensor one(dtype, {1});
  one.SetNumber(0, 1);
  ORRERY_ASSIGN_OR_RETURN(ir::ValueId ones, c.Constant(one));
  ORRERY_ASSIGN_OR_RETURN(
      ones, c.Op(ir::OpKind::kExpand, {ones},
                 {{"shape", std::vector<int64_t>{count}}, {"batch_dim", int64_t{0}}}));
  return c.Op(ir::OpKind::kCumSum, {ones}, {{"axis", int64_t{0}}, {"exclusive", int64_t{1}}});
}

// start + delta · (0, 1, 2, …).
absl::StatusOr<ir::ValueId> BatchRange(NodeContext& c, double start, double delta, int64_t count) {
  const ir::DType dtype = c.input_type(0).dtype;
  ORRERY_ASSIGN_OR_RETURN(ir::ValueId range, CountSamples(c, dtype, count));
  for (const auto& [kind, number, neutral] :
       {std::tuple(ir::OpKind::kMul, delta, 1.0), std::tuple(ir::OpKind::kAdd, start, 0.0)}) {
    if (number == neutral) continue;
    ir::Tensor scalar(dtype, {});
    scalar.SetNumber(0, number);
    ORRERY_ASSIGN_OR_RETURN(const ir::ValueId constant, c.Constant(scalar));
    ORRERY_ASSIGN_OR_RETURN(range, c.Op(kind, {range, constant}));
  }
  return range;
}

absl::Status LowerRange(NodeContext& c) {
  const ir::Tensor* known[3];
  for (int i = 0; i < 3; ++i) {
    known[i] = c.KnownInput(i);
    if (known[i] == nullptr || known[i]->size() != 1) {
      return absl::InvalidArgumentError(
          absl::StrCat("input ", i,
                       " depends on data; wanted one number that is known beforehand; try to "
                       "export the model with fixed sizes"));
    }
  }
  const double start = known[0]->Number(0), limit = known[1]->Number(0);
  const double delta = known[2]->Number(0);
  const double steps = std::max(0.0, std::ceil((limit - start) / delta));
  if (!(steps < 1e15)) {
    return absl::InvalidArgumentError(absl::StrCat("a range from ", start, " to ", limit, " by ",
                                                   delta, " has no end; wanted another delta"));
  }
  const ir::DType dtype = known[0]->dtype();
  const auto count = static_cast<int64_t>(steps);
  if (c.GrowsWithBatch(count)) return c.Return(BatchRange(c, start, delta, count));
  if (count > kMaxValues) return c.Return(c.Constant({dtype, {count}, {}}, {}));
  ir::Tensor range(dtype, {count});
  for (int64_t i = 0; i < count; ++i) {
    range.SetNumber(i, start + static_cast<double>(i) * delta);
  }
  range.RoundToDType();
  return c.Return(c.Constant(range));
}

// Ones where the number of the row, which is a sample's, is that of the column.
absl::Status ReturnEyeOfBatch(NodeContext& c, ir::DType dtype, int64_t count) {
  ORRERY_ASSIGN_OR_RETURN(const ir::ValueId range, CountSamples(c, ir::DType::kI64, count));
  ORRERY_ASSIGN_OR_RETURN(const ir::ValueId rows, c.Op(ir::OpKind::kUnsqueeze, {range},
                                                       {{"axes", std::vector<int64_t>{1}}}));
  ORRERY_ASSIGN_OR_RETURN(const ir::ValueId columns, c.Op(ir::OpKind::kUnsqueeze, {range},
                                                          {{"axes", std::vector<int64_t>{0}}}));
  ORRERY_ASSIGN_OR_RETURN(const ir::ValueId same, c.Op(ir::OpKind::kEqual, {rows, columns}));
  return c.Return(c.Op(ir::OpKind::kCast, {same}, {{"to", std::string(ir::ToString(dtype))}}));
}

// Ones on a diagonal of a matrix that is as large as the input.
absl::Status LowerEyeLike(NodeContext& c) {
  const ir::TensorType x = c.input_type(0);
  ir::DType dtype = x.dtype;
  if (const int64_t wanted = c.Int("dtype", 0); wanted != 0) {
    ORRERY_ASSIGN_OR_RETURN(dtype, ElementType(static_cast<int>(wanted)));
  }
  if (x.dims.size() != 2) {
    return absl::InvalidArgumentError(
        absl::StrCat("input 0 has ", x.dims.size(), " dimensions; wanted 2"));
  }
  const int64_t k = c.Int("k", 0);
  if (k == 0 && x.dims[0] == x.dims[1] && c.GrowsWithBatch(x.dims[0])) {
    return ReturnEyeOfBatch(c, dtype, x.dims[0]);
  }
  if (ir::ElementCount(x.dims) > kMaxValues) return c.Return(c.Constant({dtype, x.dims, {}}, {}));
  ir::Tensor eye(dtype, x.dims);
  for (int64_t row = 0; row < x.dims[0]; ++row) {
    for (int64_t column = 0; column < x.dims[1]; ++column) {
      if (column - row == k) eye.SetNumber(row * x.dims[1] + column, 1);
    }
  }
  return c.Return(c.Constant(eye));
}

}  // namespace
}  // namespace shape_values_cc

extern const OnnxOp kShapeOnnxOp = {.type = "Shape", .lower = shape_values_cc::LowerShape};

extern const OnnxOp kSizeOnnxOp = {.type = "Size", .lower = shape_values_cc::LowerSize};

extern const OnnxOp kConstantOfShapeOnnxOp = {.type = "ConstantOfShape",
                                              .lower = shape_values_cc::LowerConstantOfShape};

extern const OnnxOp kRangeOnnxOp = {
    .type = "Range", .inputs = 3, .lower = shape_values_cc::LowerRange};

extern const OnnxOp kEyeLikeOnnxOp = {.type = "EyeLike", .lower = shape_values_cc::LowerEyeLike};

}  // namespace orrery::importer
