#include <algorithm>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "importer/onnx/onnx_op.h"
#include "importer/onnx/onnx_ops/windows.h"
#include "ir/op_kind.h"
#include "support/status.h"

// Images read at points, in regions, or put together again after a pool.

namespace orrery::importer {
namespace sampling_cc {
namespace {

// Opset 20 renamed the modes.
absl::Status LowerGridSample(NodeContext& c) {
  std::string mode = c.String("mode", c.opset() < 20 ? "bilinear" : "linear");
  if (mode == "bilinear") mode = "linear";
  if (mode == "bicubic") mode = "cubic";
  ir::AttributeSet attributes = {{"mode", mode},
                                 {"padding_mode", c.String("padding_mode", "zeros")}};
  if (c.Int("align_corners", 0) != 0) attributes.Set("align_corners", int64_t{1});
  return c.Return(c.Op(ir::OpKind::kGridSample, {c.input(0), c.input(1)}, attributes));
}

absl::Status LowerRoiAlign(NodeContext& c) {
  const bool half =
      c.opset() >= 16 && c.String("coordinate_transformation_mode", "half_pixel") == "half_pixel";
  ir::AttributeSet attributes = {
      {"mode", c.String("mode", "avg")},
      {"pooled", std::vector<int64_t>{c.Int("output_height", 1), c.Int("output_width", 1)}},
      {"sampling_ratio", c.Int("sampling_ratio", 0)},
      {"spatial_scale", c.Float("spatial_scale", 1)}};
  if (half) attributes.Set("half_pixel", int64_t{1});
  return c.Return(c.Op(ir::OpKind::kRoiAlign, {c.input(0), c.input(1), c.input(2)}, attributes));
}

absl::Status LowerMaxRoiPool(NodeContext& c) {
  return c.Return(
      c.Op(ir::OpKind::kRoiMaxPool, {c.input(0), c.input(1)},
           {{"pooled", c.Ints("pooled_shape")}, {"spatial_scale", c.Float("spatial_scale", 1)}}));
}

// The image that the pool had; the positions count in it even where a larger one is asked for.
absl::StatusOr<std::vector<int64_t>> PooledImage(NodeContext& c) {
  ORRERY_ASSIGN_OR_RETURN(const ir::Dims input, SpatialInput(c, 0));
  const size_t rank = input.size();
  ORRERY_ASSIGN_OR_RETURN(const std::vector<int64_t> kernel,
                          SpatialList(c, "kernel_shape", rank, 1));
  ORRERY_ASSIGN_OR_RETURN(const std::vector<int64_t> strides, SpatialList(c, "strides", rank, 1));
  ORRERY_ASSIGN_OR_RETURN(const std::vector<int64_t> pads, SpatialList(c, "pads", 2 * rank, 0));
  std::vector<int64_t> sizes;
  for (size_t d = 0; d < rank; ++d) {
    if (input[d] > (int64_t{1} << 30)) {
      return absl::InvalidArgumentError(absl::StrCat("dimension ", d + 2, " is ", input[d]));
    }
    sizes.push_back((input[d] - 1) * strides[d] - pads[d] - pads[rank + d] + kernel[d]);
  }
  return sizes;
}

absl::Status LowerMaxUnpool(NodeContext& c) {
  ORRERY_ASSIGN_OR_RETURN(const std::vector<int64_t> pooled, PooledImage(c));
  ORRERY_ASSIGN_OR_RETURN(
      ir::ValueId y, c.Op(ir::OpKind::kMaxUnpool, {c.input(0), c.input(1)}, {{"spatial", pooled}}));
  if (!c.has_input(2)) return c.Return(y);
  ORRERY_ASSIGN_OR_RETURN(const std::vector<int64_t> wanted, c.IntegerInput(2));
  std::vector<int64_t> axes, after;
  for (size_t d = 0; d < pooled.size() && wanted.size() == pooled.size() + 2; ++d) {
    const int64_t more = wanted[d + 2] - pooled[d];
    if (more <= 0) continue;
    axes.push_back(static_cast<int64_t>(d) + 2);
    after.push_back(more);
  }
  if (axes.empty()) return c.Return(y);
  return c.Return(
      c.Op(ir::OpKind::kPad, {y},
           {{"axes", axes}, {"before", std::vector<int64_t>(axes.size(), 0)}, {"after", after}}));
}

}  // namespace
}  // namespace sampling_cc

extern const OnnxOp kGridSampleOnnxOp = {
    .type = "GridSample", .inputs = 2, .since_opset = 16, .lower = sampling_cc::LowerGridSample};
extern const OnnxOp kRoiAlignOnnxOp = {
    .type = "RoiAlign", .inputs = 3, .since_opset = 10, .lower = sampling_cc::LowerRoiAlign};
extern const OnnxOp kMaxRoiPoolOnnxOp = {
    .type = "MaxRoiPool", .inputs = 2, .lower = sampling_cc::LowerMaxRoiPool};
extern const OnnxOp kMaxUnpoolOnnxOp = {
    .type = "MaxUnpool", .inputs = 2, .since_opset = 9, .lower = sampling_cc::LowerMaxUnpool};

}  // namespace orrery::importer
