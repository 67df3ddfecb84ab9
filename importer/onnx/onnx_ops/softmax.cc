#include <algorithm>

#include "importer/onnx/onnx_op.h"
#include "ir/op_kind.h"
#include "support/status.h"

// Softmax and its like. Before opset 13 they took the tensor as a matrix: the dimensions before
// `axis`, 1 unless it is given, are its rows, and all others together its columns.

namespace orrery::importer {
namespace softmax_cc {
namespace {

std::vector<int64_t> ShapeOf(ir::Dims::const_iterator begin, ir::Dims::const_iterator end) {
  return {begin, end};
}

// Dimension 0 is what is left, so that another batch needs no other shape.
ir::AttributeSet ShapeAttribute(std::vector<int64_t> shape) {
  const bool is_empty = std::count(shape.begin(), shape.end(), 0) > 0;
  if (!is_empty) shape[0] = -1;
  return {{"shape", std::move(shape)}};
}

absl::StatusOr<ir::ValueId> OfMatrix(NodeContext& c, ir::OpKind kind, size_t axis) {
  const ir::Dims dims = c.input_type(0).dims;
  const auto cut = dims.begin() + static_cast<int64_t>(axis);
  std::vector<int64_t> shape = ShapeOf(dims.begin(), cut);
  shape.push_back(ir::ElementCount(ir::Dims(cut, dims.end())));
  ORRERY_ASSIGN_OR_RETURN(const ir::ValueId matrix, c.Op(ir::OpKind::kReshape, {c.input(0)},
                                                         ShapeAttribute(std::move(shape))));
  ORRERY_ASSIGN_OR_RETURN(const ir::ValueId y,
                          c.Op(kind, {matrix}, {{"axis", static_cast<int64_t>(axis)}}));
  return c.Op(ir::OpKind::kReshape, {y}, ShapeAttribute(ShapeOf(dims.begin(), dims.end())));
}

template <ir::OpKind kind>
absl::Status LowerSoftmax(NodeContext& c) {
  const bool as_matrix = c.opset() < 13;
  const ir::Dims dims = c.input_type(0).dims;
  ORRERY_ASSIGN_OR_RETURN(const size_t axis,
                          ir::NormalizeAxis(c.Int("axis", as_matrix ? 1 : -1), dims.size()));
  const auto after = dims.begin() + static_cast<int64_t>(axis) + 1;
  const bool is_last = std::all_of(after, dims.end(), [](int64_t size) { return size == 1; });
  if (as_matrix && !is_last) return c.Return(OfMatrix(c, kind, axis));
  return c.Return(c.Op(kind, {c.input(0)}, {{"axis", static_cast<int64_t>(axis)}}));
}

}  // namespace
}  // namespace softmax_cc

extern const OnnxOp kSoftmaxOnnxOp = {.type = "Softmax",
                                      .lower = softmax_cc::LowerSoftmax<ir::OpKind::kSoftmax>};
extern const OnnxOp kLogSoftmaxOnnxOp = {
    .type = "LogSoftmax", .lower = softmax_cc::LowerSoftmax<ir::OpKind::kLogSoftmax>};
extern const OnnxOp kHardmaxOnnxOp = {.type = "Hardmax",
                                      .lower = softmax_cc::LowerSoftmax<ir::OpKind::kHardmax>};

}  // namespace orrery::importer
