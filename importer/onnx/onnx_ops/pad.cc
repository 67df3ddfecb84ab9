#include <algorithm>
#include <cstdint>
#include <numeric>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "importer/onnx/onnx_op.h"
#include "ir/op_kind.h"
#include "ir/ops/movement.h"
#include "support/status.h"

// ONNX ops that put something around a tensor, or cut it off.

namespace orrery::importer {
namespace pad_cc {
namespace {

using ir::kToTheEnd;

// What is added before and after each of some dimensions; a negative number is cut off.
struct Frame {
  std::vector<int64_t> axes, before, after;
};

// The part of x that is left when negative numbers of the frame are cut off; these become 0.
absl::StatusOr<ir::ValueId> Crop(NodeContext& c, ir::ValueId x, Frame& frame) {
  const ir::Dims dims = c.type(x).dims;
  std::vector<int64_t> axes, starts, ends;
  for (size_t i = 0; i < frame.axes.size(); ++i) {
    if (frame.before[i] >= 0 && frame.after[i] >= 0) continue;
    const int64_t size = dims[static_cast<size_t>(frame.axes[i])];
    const int64_t start = -std::clamp<int64_t>(frame.before[i], -size, 0);
    const int64_t cut = -std::clamp<int64_t>(frame.after[i], -size, 0);
    axes.push_back(frame.axes[i]);
    starts.push_back(start);
    ends.push_back(cut == 0 ? kToTheEnd : std::max(start, size - cut));
    frame.before[i] = std::max<int64_t>(frame.before[i], 0);
    frame.after[i] = std::max<int64_t>(frame.after[i], 0);
  }
  if (axes.empty()) return x;
  return c.Op(ir::OpKind::kSlice, {x},
              {{"axes", axes},
               {"starts", starts},
               {"ends", ends},
               {"steps", std::vector<int64_t>(axes.size(), 1)}});
}

absl::StatusOr<ir::ValueId> Framed(NodeContext& c, ir::ValueId x, Frame frame,
                                   ir::AttributeSet attributes) {
  ORRERY_ASSIGN_OR_RETURN(x, Crop(c, x, frame));
  Frame kept;
  for (size_t i = 0; i < frame.axes.size(); ++i) {
    if (frame.before[i] == 0 && frame.after[i] == 0) continue;
    kept.axes.push_back(frame.axes[i]);
    kept.before.push_back(frame.before[i]);
    kept.after.push_back(frame.after[i]);
  }
  if (kept.axes.empty()) return x;
  attributes.Set("axes", kept.axes);
  attributes.Set("before", kept.before);
  attributes.Set("after", kept.after);
  return c.Op(ir::OpKind::kPad, {x}, attributes);
}

// Dimensions that input 3 names, or the attribute `axes`; all of them when neither is there.
absl::StatusOr<std::vector<int64_t>> AxesOf(NodeContext& c, size_t rank) {
  std::vector<int64_t> axes = c.Ints("axes");
  if (c.has_input(3)) {
    ORRERY_ASSIGN_OR_RETURN(axes, c.IntegerInput(3));
  } else if (c.Attribute("axes") == nullptr) {
    axes.resize(rank);
    std::iota(axes.begin(), axes.end(), 0);
  }
  for (int64_t& axis : axes) {
    ORRERY_ASSIGN_OR_RETURN(const size_t position, ir::NormalizeAxis(axis, rank));
    axis = static_cast<int64_t>(position);
  }
  return axes;
}

// Before opset 11 pads and value were attributes; since 18 input 3 says which axes are padded.
absl::StatusOr<Frame> FrameOf(NodeContext& c) {
  const size_t rank = c.input_type(0).dims.size();
  std::vector<int64_t> pads = c.Ints("pads");
  if (c.has_input(1)) {
    ORRERY_ASSIGN_OR_RETURN(pads, c.IntegerInput(1));
  }
  Frame frame;
  ORRERY_ASSIGN_OR_RETURN(frame.axes, AxesOf(c, rank));
  const auto count = static_cast<int64_t>(frame.axes.size());
  if (static_cast<int64_t>(pads.size()) != 2 * count) {
    return absl::InvalidArgumentError(absl::StrCat("pads=[", absl::StrJoin(pads, ","), "] for ",
                                                   count, " dimensions; wanted two for each"));
  }
  frame.before.assign(pads.begin(), pads.begin() + count);
  frame.after.assign(pads.begin() + count, pads.end());
  return frame;
}

absl::Status LowerPad(NodeContext& c) {
  ORRERY_ASSIGN_OR_RETURN(const Frame frame, FrameOf(c));
  ir::AttributeSet attributes;
  const std::string mode = c.String("mode", "constant");
  if (mode != "constant") attributes.Set("mode", mode);
  double value = c.Float("value", 0);
  if (c.has_input(2)) {
    const ir::Tensor* known = c.KnownInput(2);
    if (known == nullptr || known->size() != 1) {
      return absl::InvalidArgumentError(
          "input 2 (constant_value) depends on data; wanted one number that is known beforehand");
    }
    value = known->Number(0);
  }
  if (value != 0 && mode == "constant") attributes.Set("value", value);
  return c.Return(Framed(c, c.input(0), frame, attributes));
}

// To `shape` along `axes`, as much off or on at the front as at the back, the odd one at the back.
absl::Status LowerCenterCropPad(NodeContext& c) {
  const ir::Dims dims = c.input_type(0).dims;
  ORRERY_ASSIGN_OR_RETURN(const std::vector<int64_t> shape, c.IntegerInput(1));
  Frame frame;
  ORRERY_ASSIGN_OR_RETURN(frame.axes, AxesOf(c, dims.size()));
  if (shape.size() != frame.axes.size()) {
    return absl::InvalidArgumentError(absl::StrCat("got ", shape.size(), " sizes for ",
                                                   frame.axes.size(), " axes; wanted as many"));
  }
  for (size_t i = 0; i < shape.size(); ++i) {
    if (shape[i] < 0) return absl::InvalidArgumentError("a size is negative; wanted at least 0");
    const int64_t more = shape[i] - dims[static_cast<size_t>(frame.axes[i])];
    const int64_t before = more / 2;
    frame.before.push_back(before);
    frame.after.push_back(more - before);
  }
  return c.Return(Framed(c, c.input(0), frame, {}));
}

absl::Status LowerTile(NodeContext& c) {
  ORRERY_ASSIGN_OR_RETURN(const std::vector<int64_t> wanted, c.IntegerInput(1));
  const size_t rank = c.input_type(0).dims.size();
  if (wanted.size() != rank) {
    return absl::InvalidArgumentError(absl::StrCat("repeats=[", absl::StrJoin(wanted, ","),
                                                   "] for ", rank, " dimensions; wanted one each"));
  }
  std::vector<int64_t> axes, repeats;
  for (size_t d = 0; d < rank; ++d) {
    if (wanted[d] == 1) continue;
    axes.push_back(static_cast<int64_t>(d));
    repeats.push_back(wanted[d]);
  }
  if (axes.empty()) return c.Return(c.input(0));
  // Dimensions of size 1 are seen as often as that: no copy is made, and the batch is followed.
  const ir::Dims& dims = c.input_type(0).dims;
  const bool sees =
      std::ranges::all_of(axes, [&](int64_t axis) { return dims[static_cast<size_t>(axis)] == 1; });
  if (sees) {
    std::vector<int64_t> shape(rank, -1);
    for (size_t i = 0; i < axes.size(); ++i) shape[static_cast<size_t>(axes[i])] = repeats[i];
    return c.Return(c.Op(ir::OpKind::kExpand, {c.input(0)}, {{"shape", shape}}));
  }
  return c.Return(c.Op(ir::OpKind::kTile, {c.input(0)}, {{"axes", axes}, {"repeats", repeats}}));
}

}  // namespace
}  // namespace pad_cc

extern const OnnxOp kPadOnnxOp = {.type = "Pad", .since_opset = 2, .lower = pad_cc::LowerPad};

extern const OnnxOp kCenterCropPadOnnxOp = {
    .type = "CenterCropPad", .inputs = 2, .since_opset = 18, .lower = pad_cc::LowerCenterCropPad};

// Before opset 6 inputs were one number of tiles and one axis.
extern const OnnxOp kTileOnnxOp = {
    .type = "Tile", .inputs = 2, .since_opset = 6, .lower = pad_cc::LowerTile};

}  // namespace orrery::importer
