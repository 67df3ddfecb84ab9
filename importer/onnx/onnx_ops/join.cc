#include <cstdint>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "importer/onnx/onnx_op.h"
#include "ir/op_kind.h"
#include "support/status.h"

namespace orrery::importer {
namespace join_cc {
namespace {

// Parts of no elements are left out, as long as others are there.
absl::Status LowerConcat(NodeContext& c) {
  if (c.Attribute("axis") == nullptr) {
    return absl::InvalidArgumentError("the attribute axis is missing; wanted a dimension");
  }
  ORRERY_ASSIGN_OR_RETURN(const size_t axis,
                          ir::NormalizeAxis(c.Int("axis", 0), c.input_type(0).dims.size()));
  std::vector<ir::ValueId> parts, empty;
  for (int i = 0; i < c.node().input_size(); ++i) {
    const ir::Dims& dims = c.input_type(i).dims;
    const bool is_empty = axis < dims.size() && dims[axis] == 0;
    (is_empty ? empty : parts).push_back(c.input(i));
  }
  if (parts.empty()) parts.push_back(empty[0]);
  if (parts.size() == 1) return c.Return(parts[0]);
  return c.Return(c.Op(ir::OpKind::kConcat, parts, {{"axis", static_cast<int64_t>(axis)}}));
}

// Sizes of `count` parts: equal ones, but from opset 18 on the last may be smaller.
absl::StatusOr<std::vector<int64_t>> EqualSizes(const NodeContext& c, int64_t size, int64_t count) {
  const int64_t part = count < 1 ? 0 : (size + count - 1) / count;
  const int64_t last = size - part * (count - 1);
  if (count < 1 || last < 0 || (last != part && c.opset() < 18)) {
    return absl::InvalidArgumentError(
        absl::StrCat("a dimension of ", size, " does not split into ", count, " equal parts"));
  }
  std::vector<int64_t> sizes(static_cast<size_t>(count), part);
  sizes.back() = last;
  return sizes;
}

// The sizes were an attribute before opset 13; from 18 on their number may be one.
absl::StatusOr<std::vector<int64_t>> SizesOf(NodeContext& c, int64_t size) {
  if (c.has_input(1)) return c.IntegerInput(1);
  if (c.Attribute("split") != nullptr) return c.Ints("split");
  const int64_t outputs = c.node().output_size();
  const int64_t count = c.Int("num_outputs", outputs);
  if (count == outputs) return EqualSizes(c, size, count);
  return absl::InvalidArgumentError(
      absl::StrCat("num_outputs is ", count, "; wanted ", outputs, ", as the node has outputs"));
}

absl::Status LowerSplit(NodeContext& c) {
  const ir::Dims dims = c.input_type(0).dims;
  ORRERY_ASSIGN_OR_RETURN(const size_t axis, ir::NormalizeAxis(c.Int("axis", 0), dims.size()));
  ORRERY_ASSIGN_OR_RETURN(const std::vector<int64_t> sizes, SizesOf(c, dims[axis]));
  if (static_cast<int>(sizes.size()) != c.node().output_size()) {
    return absl::InvalidArgumentError(absl::StrCat("split=[", absl::StrJoin(sizes, ","), "] for ",
                                                   c.node().output_size(),
                                                   " outputs; wanted a size for each"));
  }
  if (sizes.size() == 1 && sizes[0] == dims[axis]) return c.Return(c.input(0));
  const ir::ValueId x = c.input(0);
  ORRERY_ASSIGN_OR_RETURN(const std::vector<ir::ValueId> parts,
                          c.Ops(ir::OpKind::kSplit, std::span(&x, 1),
                                {{"axis", static_cast<int64_t>(axis)}, {"sizes", sizes}}));
  for (size_t i = 0; i < parts.size(); ++i) c.SetOutput(static_cast<int>(i), parts[i]);
  return absl::OkStatus();
}

}  // namespace
}  // namespace join_cc

// Before opset 4 the axis could be left out.
extern const OnnxOp kConcatOnnxOp = {
    .type = "Concat", .since_opset = 4, .lower = join_cc::LowerConcat};

extern const OnnxOp kSplitOnnxOp = {
    .type = "Split", .since_opset = 2, .lower = join_cc::LowerSplit};

}  // namespace orrery::importer
