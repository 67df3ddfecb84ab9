#include <algorithm>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "importer/onnx/onnx_op.h"
#include "importer/onnx/onnx_ops/products.h"
#include "importer/onnx/onnx_ops/windows.h"
#include "ir/op_kind.h"
#include "support/status.h"

// Convolutions.

namespace orrery::importer {
namespace convolution_cc {
namespace {

// How a transposed convolution lays out its result along one dimension.
struct Extent {
  int64_t size, before, after;
};

struct Transposed {
  std::vector<int64_t> strides, dilations, output_padding, pads, output_shape;
  std::string auto_pad;
};

absl::StatusOr<Transposed> ReadTransposed(NodeContext& c, size_t rank) {
  Transposed t;
  ORRERY_ASSIGN_OR_RETURN(t.strides, SpatialList(c, "strides", rank, 1));
  ORRERY_ASSIGN_OR_RETURN(t.dilations, SpatialList(c, "dilations", rank, 1));
  ORRERY_ASSIGN_OR_RETURN(t.output_padding, SpatialList(c, "output_padding", rank, 0));
  ORRERY_ASSIGN_OR_RETURN(t.pads, SpatialList(c, "pads", 2 * rank, 0));
  t.output_shape = c.Ints("output_shape");
  // Some exporters write batch and channels, too.
  if (t.output_shape.size() == rank + 2) {
    t.output_shape.erase(t.output_shape.begin(), t.output_shape.begin() + 2);
  }
  if (!t.output_shape.empty() && t.output_shape.size() != rank) {
    return absl::InvalidArgumentError(absl::StrCat(
        "attribute 'output_shape' has ", t.output_shape.size(), " numbers; wanted ", rank));
  }
  ORRERY_ASSIGN_OR_RETURN(t.auto_pad, AutoPad(c));
  return t;
}

// As the operator's description has it: a size that is asked for makes the padding.
Extent ExtentOf(const Transposed& t, size_t d, int64_t input, int64_t kernel) {
  const size_t rank = t.strides.size();
  const int64_t whole =
      t.strides[d] * (input - 1) + t.output_padding[d] + (kernel - 1) * t.dilations[d] + 1;
  const bool same = t.auto_pad == "SAME_UPPER" || t.auto_pad == "SAME_LOWER";
  if (!same && t.output_shape.empty()) {
    const bool none = t.auto_pad == "VALID";
    const int64_t before = none ? 0 : t.pads[d], after = none ? 0 : t.pads[rank + d];
    return {.size = whole - before - after, .before = before, .after = after};
  }
  const int64_t size = t.output_shape.empty() ? input * t.strides[d] : t.output_shape[d];
  const int64_t cut = std::max<int64_t>(whole - size, 0);
  const int64_t half = t.auto_pad == "SAME_UPPER" ? cut / 2 : cut - cut / 2;
  return {.size = size, .before = half, .after = cut - half};
}

absl::Status LowerConvTranspose(NodeContext& c) {
  ORRERY_ASSIGN_OR_RETURN(const ir::Dims input, SpatialInput(c, 0));
  ORRERY_ASSIGN_OR_RETURN(const ir::Dims kernel, SpatialInput(c, 1));
  if (input.size() != kernel.size()) {
    return absl::InvalidArgumentError(absl::StrCat("inputs have ", input.size() + 2, " and ",
                                                   kernel.size() + 2,
                                                   " dimensions; wanted as many"));
  }
  ORRERY_RETURN_IF_ERROR(CheckKernel(c, kernel));
  const size_t rank = input.size();
  ORRERY_ASSIGN_OR_RETURN(const Transposed t, ReadTransposed(c, rank));
  std::vector<int64_t> spatial, pads(2 * rank);
  for (size_t d = 0; d < rank; ++d) {
    if (input[d] > (int64_t{1} << 30) || kernel[d] > (int64_t{1} << 30)) {
      return absl::InvalidArgumentError("sizes are too large; wanted at most 2^30");
    }
    const Extent extent = ExtentOf(t, d, input[d], kernel[d]);
    spatial.push_back(extent.size);
    pads[d] = extent.before;
    pads[rank + d] = extent.after;
  }
  std::vector<ir::ValueId> operands = {c.input(0), c.input(1)};
  if (c.has_input(2)) operands.push_back(c.input(2));
  return c.Return(c.Op(ir::OpKind::kConvTranspose, operands,
                       {{"strides", t.strides},
                        {"dilations", t.dilations},
                        {"pads", pads},
                        {"group", c.Int("group", 1)},
                        {"spatial", spatial}}));
}

// A bias is added to what comes of it.
absl::Status LowerDeformConv(NodeContext& c) {
  ORRERY_ASSIGN_OR_RETURN(const ir::Dims input, SpatialInput(c, 0));
  ORRERY_ASSIGN_OR_RETURN(const ir::Dims weight, SpatialInput(c, 1));
  ORRERY_RETURN_IF_ERROR(CheckKernel(c, weight));
  const std::vector<int64_t> kernel(weight.begin(), weight.end());
  ORRERY_ASSIGN_OR_RETURN(ir::AttributeSet attributes, WindowAttributes(c, kernel, input));
  attributes.Set("group", c.Int("group", 1));
  attributes.Set("offset_group", c.Int("offset_group", 1));
  std::vector<ir::ValueId> operands = {c.input(0), c.input(1), c.input(2)};
  if (c.has_input(4)) operands.push_back(c.input(4));
  ORRERY_ASSIGN_OR_RETURN(const ir::ValueId y, c.Op(ir::OpKind::kDeformConv, operands, attributes));
  if (!c.has_input(3)) return c.Return(y);
  ORRERY_ASSIGN_OR_RETURN(const ir::ValueId bias, c.Op(ir::OpKind::kUnsqueeze, {c.input(3)},
                                                       {{"axes", std::vector<int64_t>{1, 2}}}));
  return c.Return(c.Op(ir::OpKind::kAdd, {y, bias}));
}

}  // namespace
}  // namespace convolution_cc

absl::StatusOr<ir::ValueId> ConvOf(NodeContext& c) {
  ORRERY_ASSIGN_OR_RETURN(const ir::Dims input, SpatialInput(c, 0));
  ORRERY_ASSIGN_OR_RETURN(const ir::Dims weight, SpatialInput(c, 1));
  ORRERY_RETURN_IF_ERROR(CheckKernel(c, weight));
  const std::vector<int64_t> kernel(weight.begin(), weight.end());
  ORRERY_ASSIGN_OR_RETURN(ir::AttributeSet attributes, WindowAttributes(c, kernel, input));
  attributes.Set("group", c.Int("group", 1));
  std::vector<ir::ValueId> operands = {c.input(0), c.input(1)};
  if (c.has_input(2)) operands.push_back(c.input(2));
  return c.Op(ir::OpKind::kConv, operands, attributes);
}

extern const OnnxOp kConvOnnxOp = {
    .type = "Conv", .inputs = 2, .weights = 0b110, .lower = [](NodeContext& c) {
      return c.Return(ConvOf(c));
    }};

extern const OnnxOp kConvTransposeOnnxOp = {.type = "ConvTranspose",
                                            .inputs = 2,
                                            .weights = 0b110,
                                            .lower = convolution_cc::LowerConvTranspose};

extern const OnnxOp kDeformConvOnnxOp = {.type = "DeformConv",
                                         .inputs = 3,
                                         .since_opset = 19,
                                         .weights = 0b1010,
                                         .lower = convolution_cc::LowerDeformConv};

}  // namespace orrery::importer
