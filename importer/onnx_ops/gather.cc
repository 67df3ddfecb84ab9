#include <cstdint>
#include <limits>
#include <vector>

#include "absl/strings/str_cat.h"
#include "importer/onnx_op.h"
#include "support/status.h"

namespace orrery::importer {
namespace {

constexpr int64_t kToTheEnd = std::numeric_limits<int64_t>::max();

// One element along a dimension is a view: Slice and Squeeze.
absl::StatusOr<ir::ValueId> Select(NodeContext& c, size_t axis, int64_t index) {
  const int64_t size = c.input_type(0).dims[axis];
  if (index < -size || index >= size) {
    return absl::InvalidArgumentError(
        absl::StrCat("index ", index, " is no place in a dimension of ", size));
  }
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

absl::Status LowerGather(NodeContext& c) {
  ORRERY_ASSIGN_OR_RETURN(const size_t axis,
                          ir::NormalizeAxis(c.Int("axis", 0), c.input_type(0).dims.size()));
  const ir::Tensor* ids = c.KnownInput(1);
  if (ids != nullptr && ids->dims().empty() && !ids->is_float()) {
    return c.Return(Select(c, axis, ids->ints()[0]));
  }
  return c.Return(
      c.Op(ir::OpKind::kGather, {c.input(0), c.input(1)}, {{"axis", static_cast<int64_t>(axis)}}));
}

}  // namespace

// Input 0 is the table of an embedding.
extern const OnnxOp kGatherOnnxOp = {
    .type = "Gather", .inputs = 2, .weights = 0b1, .lower = LowerGather};

}  // namespace orrery::importer
