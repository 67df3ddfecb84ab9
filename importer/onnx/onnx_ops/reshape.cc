#include <algorithm>
#include <cstdint>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "importer/onnx/onnx_op.h"
#include "ir/op_kind.h"
#include "support/status.h"

// ONNX ops that give the elements of a tensor other dimensions.

namespace orrery::importer {
namespace reshape_cc {
namespace {

absl::StatusOr<ir::ValueId> Reshape(NodeContext& c, ir::ValueId x, std::vector<int64_t> shape) {
  return c.Op(ir::OpKind::kReshape, {x}, {{"shape", std::move(shape)}});
}

// A 0 stands for the dimension of the input in that position, unless allowzero is set. A -1 stays:
// it may be the batch.
absl::Status LowerReshape(NodeContext& c) {
  ORRERY_ASSIGN_OR_RETURN(std::vector<int64_t> shape, c.IntegerInput(1));
  const ir::Dims dims = c.input_type(0).dims;
  const bool keeps_zeros = c.Int("allowzero", 0) != 0;
  for (size_t d = 0; d < shape.size() && !keeps_zeros; ++d) {
    if (shape[d] != 0) continue;
    if (d >= dims.size()) {
      return absl::InvalidArgumentError(absl::StrCat("shape [", absl::StrJoin(shape, ","),
                                                     "] keeps dimension ", d,
                                                     " of an input that has ", dims.size()));
    }
    shape[d] = dims[d];
  }
  // Nothing is left of an empty tensor for -1 to count.
  if (ir::ElementCount(dims) == 0)
    std::replace(shape.begin(), shape.end(), int64_t{-1}, int64_t{0});
  return c.Return(Reshape(c, c.input(0), std::move(shape)));
}

absl::Status LowerFlatten(NodeContext& c) {
  const ir::Dims dims = c.input_type(0).dims;
  const auto rank = static_cast<int64_t>(dims.size());
  int64_t axis = c.Int("axis", 1);
  if (axis < -rank || axis > rank) {
    return absl::InvalidArgumentError(
        absl::StrCat("axis ", axis, " is none of the ", rank, " dimensions"));
  }
  if (axis < 0) axis += rank;
  const int64_t rows = ir::ElementCount(ir::Dims(dims.begin(), dims.begin() + axis));
  const int64_t columns = ir::ElementCount(ir::Dims(dims.begin() + axis, dims.end()));
  if (axis > 0 && columns > 0) return c.Return(Reshape(c, c.input(0), {-1, columns}));
  if (axis == 0 && columns > 0) return c.Return(Reshape(c, c.input(0), {1, -1}));
  return c.Return(Reshape(c, c.input(0), {rows, columns}));
}

// Before opset 13 the axes were an attribute.
absl::StatusOr<std::vector<int64_t>> AxesOf(NodeContext& c, size_t rank) {
  std::vector<int64_t> axes = c.Ints("axes");
  if (c.has_input(1)) {
    ORRERY_ASSIGN_OR_RETURN(axes, c.IntegerInput(1));
  }
  for (int64_t& axis : axes) {
    ORRERY_ASSIGN_OR_RETURN(const size_t position, ir::NormalizeAxis(axis, rank));
    axis = static_cast<int64_t>(position);
  }
  std::sort(axes.begin(), axes.end());
  return axes;
}

absl::Status LowerSqueeze(NodeContext& c) {
  const ir::Dims dims = c.input_type(0).dims;
  ORRERY_ASSIGN_OR_RETURN(std::vector<int64_t> axes, AxesOf(c, dims.size()));
  if (!c.has_input(1) && c.Attribute("axes") == nullptr) {
    for (size_t d = 0; d < dims.size(); ++d) {
      if (dims[d] == 1) axes.push_back(static_cast<int64_t>(d));
    }
  }
  return c.Return(c.Op(ir::OpKind::kSqueeze, {c.input(0)}, {{"axes", axes}}));
}

absl::Status LowerUnsqueeze(NodeContext& c) {
  if (!c.has_input(1) && c.Attribute("axes") == nullptr) {
    return absl::InvalidArgumentError("the axes are missing; wanted input 1, or an attribute");
  }
  size_t rank = c.input_type(0).dims.size() + c.Ints("axes").size();
  if (c.has_input(1)) {
    ORRERY_ASSIGN_OR_RETURN(const std::vector<int64_t> axes, c.IntegerInput(1));
    rank += axes.size();
  }
  ORRERY_ASSIGN_OR_RETURN(std::vector<int64_t> axes, AxesOf(c, rank));
  return c.Return(c.Op(ir::OpKind::kUnsqueeze, {c.input(0)}, {{"axes", std::move(axes)}}));
}

// Broadcasts both ways: a 1 in the shape keeps the dimension too.
absl::Status LowerExpand(NodeContext& c) {
  ORRERY_ASSIGN_OR_RETURN(const std::vector<int64_t> wanted, c.IntegerInput(1));
  const ir::Dims dims = c.input_type(0).dims;
  const auto target = ir::BroadcastDims(dims, ir::Dims(wanted.begin(), wanted.end()));
  if (!target.has_value()) {
    return absl::InvalidArgumentError(absl::StrCat("cannot expand [", absl::StrJoin(dims, ","),
                                                   "] to [", absl::StrJoin(wanted, ","),
                                                   "]; wanted the same sizes where neither is 1"));
  }
  std::vector<int64_t> shape(target->begin(), target->end());
  const size_t added = shape.size() - dims.size();
  for (size_t d = 0; d < dims.size(); ++d) {
    if (shape[added + d] == dims[d]) shape[added + d] = -1;
  }
  if (*target == dims) return c.Return(c.input(0));
  return c.Return(c.Op(ir::OpKind::kExpand, {c.input(0)}, {{"shape", std::move(shape)}}));
}

// [n, b·b·c, h, w] to [n, c, h·b, w·b]: the blocks come before the channels (DCR) or after (CRD).
absl::Status LowerDepthToSpace(NodeContext& c) {
  const ir::Dims x = c.input_type(0).dims;
  const int64_t block = c.Int("blocksize", 0);
  const std::string mode = c.String("mode", "DCR");
  if (x.size() != 4 || ir::ElementCount(x) == 0 || block < 1 || block > (1 << 15) ||
      x[1] % (block * block) != 0 || (mode != "DCR" && mode != "CRD")) {
    return absl::InvalidArgumentError(absl::StrCat(
        "cannot move depth of [", absl::StrJoin(x, ","), "] to space in blocks of ", block,
        " with mode ", mode,
        "; wanted 4 dimensions of at least 1, channels in whole blocks, and DCR or CRD"));
  }
  const int64_t channels = x[1] / (block * block);
  const bool blocks_first = mode == "DCR";
  const std::vector<int64_t> apart =
      blocks_first ? std::vector<int64_t>{-1, block, block, channels, x[2], x[3]}
                   : std::vector<int64_t>{-1, channels, block, block, x[2], x[3]};
  const std::vector<int64_t> perm = blocks_first ? std::vector<int64_t>{0, 3, 4, 1, 5, 2}
                                                 : std::vector<int64_t>{0, 1, 4, 2, 5, 3};
  ORRERY_ASSIGN_OR_RETURN(ir::ValueId y, Reshape(c, c.input(0), apart));
  ORRERY_ASSIGN_OR_RETURN(y, c.Op(ir::OpKind::kTranspose, {y}, {{"perm", perm}}));
  return c.Return(Reshape(c, y, {-1, channels, x[2] * block, x[3] * block}));
}

absl::Status LowerSpaceToDepth(NodeContext& c) {
  const ir::Dims x = c.input_type(0).dims;
  const int64_t block = c.Int("blocksize", 0);
  if (x.size() != 4 || ir::ElementCount(x) == 0 || block < 1 || x[2] % block != 0 ||
      x[3] % block != 0) {
    return absl::InvalidArgumentError(absl::StrCat(
        "cannot move space of [", absl::StrJoin(x, ","), "] to depth in blocks of ", block,
        "; wanted 4 dimensions of at least 1, height and width in whole blocks"));
  }
  const int64_t height = x[2] / block, width = x[3] / block;
  ORRERY_ASSIGN_OR_RETURN(ir::ValueId y,
                          Reshape(c, c.input(0), {-1, x[1], height, block, width, block}));
  ORRERY_ASSIGN_OR_RETURN(
      y, c.Op(ir::OpKind::kTranspose, {y}, {{"perm", std::vector<int64_t>{0, 3, 5, 1, 2, 4}}}));
  return c.Return(Reshape(c, y, {-1, block * block * x[1], height, width}));
}

}  // namespace
}  // namespace reshape_cc

// Before opset 5 the shape was an attribute.
extern const OnnxOp kReshapeOnnxOp = {
    .type = "Reshape", .inputs = 2, .since_opset = 5, .lower = reshape_cc::LowerReshape};

extern const OnnxOp kFlattenOnnxOp = {.type = "Flatten", .lower = reshape_cc::LowerFlatten};

extern const OnnxOp kSqueezeOnnxOp = {.type = "Squeeze", .lower = reshape_cc::LowerSqueeze};

extern const OnnxOp kUnsqueezeOnnxOp = {.type = "Unsqueeze", .lower = reshape_cc::LowerUnsqueeze};

extern const OnnxOp kExpandOnnxOp = {
    .type = "Expand", .inputs = 2, .since_opset = 8, .lower = reshape_cc::LowerExpand};

extern const OnnxOp kDepthToSpaceOnnxOp = {.type = "DepthToSpace",
                                           .lower = reshape_cc::LowerDepthToSpace};

extern const OnnxOp kSpaceToDepthOnnxOp = {.type = "SpaceToDepth",
                                           .lower = reshape_cc::LowerSpaceToDepth};

}  // namespace orrery::importer
