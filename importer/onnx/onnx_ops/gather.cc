#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "importer/onnx/onnx_op.h"
#include "ir/op_kind.h"
#include "ir/ops/movement.h"
#include "support/status.h"

namespace orrery::importer {
namespace gather_cc {
namespace {

using ir::kToTheEnd;

// One element along a dimension is a view: Slice and Squeeze.
absl::StatusOr<ir::ValueId> Select(NodeContext& c, size_t axis, int64_t index) {
  const int64_t size = c.input_type(0).dims[axis];
  if (index < 0) index += size;
  const std::vector<int64_t> axes = {static_cast<int64_t>(axis)};
  const std::vector<int64_t> starts = {index};
  const std::vector<int64_t> ends = {index == size - 1 ? kToTheEnd : index + 1};
  ir::ValueId y = c.input(0);
  if (size > 1) {
    ORRERY_ASSIGN_OR_RETURN(y, c.Op(ir::OpKind::kSlice, {y},
                                    {{"axes", axes},
                                     {"starts", starts},
                                     {"ends", ends},
                                     {"steps", std::vector<int64_t>{1}}}));
  }
  return c.Op(ir::OpKind::kSqueeze, {y}, {{"axes", axes}});
}

// Indices that are known.
absl::Status CheckPositions(const ir::Tensor& ids, int64_t size) {
  for (const int64_t index : ids.ints()) {
    if (index >= -size && index < size) continue;
    return absl::InvalidArgumentError(
        absl::StrCat("index ", index, " is no position in a dimension of ", size));
  }
  return absl::OkStatus();
}

absl::Status LowerGather(NodeContext& c) {
  ORRERY_ASSIGN_OR_RETURN(const size_t axis,
                          ir::NormalizeAxis(c.Int("axis", 0), c.input_type(0).dims.size()));
  const ir::Tensor* ids = c.KnownInput(1);
  if (ids != nullptr && !ids->is_float()) {
    ORRERY_RETURN_IF_ERROR(CheckPositions(*ids, c.input_type(0).dims[axis]));
  }
  if (ids != nullptr && ids->dims().empty() && !ids->is_float()) {
    return c.Return(Select(c, axis, ids->ints()[0]));
  }
  return c.Return(
      c.Op(ir::OpKind::kGather, {c.input(0), c.input(1)}, {{"axis", static_cast<int64_t>(axis)}}));
}

template <ir::OpKind kind>
absl::Status LowerAlongAxis(NodeContext& c) {
  ORRERY_ASSIGN_OR_RETURN(const size_t axis,
                          ir::NormalizeAxis(c.Int("axis", 0), c.input_type(0).dims.size()));
  ir::AttributeSet attributes = {{"axis", static_cast<int64_t>(axis)}};
  std::vector<ir::ValueId> operands = {c.input(0), c.input(1)};
  if (kind == ir::OpKind::kScatterElements) operands.push_back(c.input(2));
  if (const std::string reduction = c.String("reduction", "none"); reduction != "none") {
    attributes.Set("reduction", reduction);
  }
  return c.Return(c.Op(kind, operands, attributes));
}

absl::Status LowerScatterND(NodeContext& c) {
  ir::AttributeSet attributes;
  if (const std::string reduction = c.String("reduction", "none"); reduction != "none") {
    attributes.Set("reduction", reduction);
  }
  return c.Return(c.Op(ir::OpKind::kScatterND, {c.input(0), c.input(1), c.input(2)}, attributes));
}

}  // namespace
}  // namespace gather_cc

// Input 0 is the table of an embedding.
extern const OnnxOp kGatherOnnxOp = {
    .type = "Gather", .inputs = 2, .weights = 0b1, .lower = gather_cc::LowerGather};

extern const OnnxOp kGatherElementsOnnxOp = {
    .type = "GatherElements",
    .inputs = 2,
    .lower = gather_cc::LowerAlongAxis<ir::OpKind::kGatherElements>};

extern const OnnxOp kScatterElementsOnnxOp = {
    .type = "ScatterElements",
    .inputs = 3,
    .lower = gather_cc::LowerAlongAxis<ir::OpKind::kScatterElements>};

// The name of ScatterElements before opset 11.
extern const OnnxOp kScatterOnnxOp = {
    .type = "Scatter",
    .inputs = 3,
    .lower = gather_cc::LowerAlongAxis<ir::OpKind::kScatterElements>};

extern const OnnxOp kScatterNDOnnxOp = {
    .type = "ScatterND", .inputs = 3, .lower = gather_cc::LowerScatterND};

}  // namespace orrery::importer
