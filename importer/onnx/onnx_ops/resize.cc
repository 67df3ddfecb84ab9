#include <algorithm>
#include <cmath>
#include <cstdint>
#include <numeric>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "importer/onnx/onnx_op.h"
#include "ir/op_kind.h"
#include "support/status.h"

namespace orrery::importer {
namespace resize_cc {
namespace {

// What a Resize makes of each of some dimensions.
struct Target {
  std::vector<int64_t> axes, sizes;
  std::vector<double> scales;
  std::vector<double> roi;  // begins, then ends; may be empty
};

absl::StatusOr<std::vector<double>> NumbersInput(const NodeContext& c, int i) {
  const ir::Tensor* known = c.KnownInput(i);
  if (known == nullptr) {
    return absl::InvalidArgumentError(
        absl::StrCat("input ", i,
                     " depends on data; wanted numbers that are known beforehand; try "
                     "to export the model with fixed sizes"));
  }
  std::vector<double> numbers;
  for (int64_t n = 0; n < known->size(); ++n) numbers.push_back(known->Number(n));
  return numbers;
}

absl::Status CheckCount(absl::string_view what, size_t count, size_t axes, int each = 1) {
  if (count == axes * static_cast<size_t>(each)) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("got ", count, " ", what, " for ", axes,
                                                 " dimensions; wanted ", each == 1 ? "one" : "two",
                                                 " for each"));
}

// As much as `policy` says of the sizes that are wanted, without another aspect ratio.
void KeepAspectRatio(absl::string_view policy, const ir::Dims& dims, Target& target) {
  if (policy == "stretch" || target.axes.empty()) return;
  const bool fits_inside = policy == "not_larger";
  double scale = target.scales[0];
  for (const double other : target.scales) {
    scale = fits_inside ? std::min(scale, other) : std::max(scale, other);
  }
  for (size_t i = 0; i < target.axes.size(); ++i) {
    const auto size = static_cast<double>(dims[static_cast<size_t>(target.axes[i])]);
    target.scales[i] = scale;
    target.sizes[i] = static_cast<int64_t>(std::floor(scale * size + 0.5));
  }
}

absl::Status SetSizes(NodeContext& c, int input, Target& target) {
  const ir::Dims dims = c.input_type(0).dims;
  ORRERY_ASSIGN_OR_RETURN(target.sizes, c.IntegerInput(input));
  ORRERY_RETURN_IF_ERROR(CheckCount("sizes", target.sizes.size(), target.axes.size()));
  for (size_t i = 0; i < target.axes.size(); ++i) {
    const int64_t size = dims[static_cast<size_t>(target.axes[i])];
    if (size == 0 || target.sizes[i] < 1 || target.sizes[i] > int64_t{1} << 40) {
      return absl::InvalidArgumentError(absl::StrCat("cannot resize a dimension of ", size, " to ",
                                                     target.sizes[i], "; wanted at least 1"));
    }
    target.scales.push_back(static_cast<double>(target.sizes[i]) / static_cast<double>(size));
  }
  const std::string policy = c.String("keep_aspect_ratio_policy", "stretch");
  if (policy != "stretch" && policy != "not_larger" && policy != "not_smaller") {
    return absl::InvalidArgumentError(absl::StrCat("keep_aspect_ratio_policy is ", policy,
                                                   "; wanted stretch, not_larger or not_smaller"));
  }
  KeepAspectRatio(policy, dims, target);
  return absl::OkStatus();
}

absl::Status SetScales(NodeContext& c, std::vector<double> scales, Target& target) {
  const ir::Dims dims = c.input_type(0).dims;
  ORRERY_RETURN_IF_ERROR(CheckCount("scales", scales.size(), target.axes.size()));
  for (size_t i = 0; i < scales.size(); ++i) {
    const double size =
        std::floor(static_cast<double>(dims[static_cast<size_t>(target.axes[i])]) * scales[i]);
    if (!(size >= 1 && size < 1e12)) {
      return absl::InvalidArgumentError(
          absl::StrCat("a scale is ", scales[i], "; wanted one that leaves at least 1 element"));
    }
    target.sizes.push_back(static_cast<int64_t>(size));
  }
  target.scales = std::move(scales);
  return absl::OkStatus();
}

// Dimensions that stay as they are, the batch and the channels, are left out.
Target WithoutIdleAxes(const Target& all, const ir::Dims& dims) {
  Target kept;
  std::vector<double> ends;
  for (size_t i = 0; i < all.axes.size(); ++i) {
    const bool cropped = !all.roi.empty() && (all.roi[i] != 0 || all.roi[i + all.axes.size()] != 1);
    const int64_t size = dims[static_cast<size_t>(all.axes[i])];
    if (all.scales[i] == 1 && all.sizes[i] == size && !cropped) continue;
    kept.axes.push_back(all.axes[i]);
    kept.sizes.push_back(all.sizes[i]);
    kept.scales.push_back(all.scales[i]);
    if (all.roi.empty()) continue;
    kept.roi.push_back(all.roi[i]);
    ends.push_back(all.roi[i + all.axes.size()]);
  }
  kept.roi.insert(kept.roi.end(), ends.begin(), ends.end());
  return kept;
}

absl::Status Emit(NodeContext& c, const Target& all, ir::AttributeSet attributes) {
  const Target target = WithoutIdleAxes(all, c.input_type(0).dims);
  if (target.axes.empty()) return c.Return(c.input(0));
  attributes.Set("axes", target.axes);
  attributes.Set("sizes", target.sizes);
  attributes.Set("scales", target.scales);
  if (!target.roi.empty()) attributes.Set("roi", target.roi);
  return c.Return(c.Op(ir::OpKind::kResize, {c.input(0)}, attributes));
}

std::vector<int64_t> AllAxes(const NodeContext& c) {
  std::vector<int64_t> axes(c.input_type(0).dims.size());
  std::iota(axes.begin(), axes.end(), 0);
  return axes;
}

// Before opset 11 all there was is a mode: "linear" or "bilinear".
ir::AttributeSet OldAttributes(NodeContext& c) {
  const std::string mode = c.String("mode", "nearest");
  return {{"mode", mode == "bilinear" ? "linear" : mode},
          {"coordinates", "asymmetric"},
          {"nearest_mode", "floor"}};
}

// Upsample, and Resize of opset 10.
absl::Status LowerUpsample(NodeContext& c) {
  Target target{.axes = AllAxes(c), .sizes = {}, .scales = {}, .roi = {}};
  ORRERY_ASSIGN_OR_RETURN(std::vector<double> scales, NumbersInput(c, 1));
  ORRERY_RETURN_IF_ERROR(SetScales(c, std::move(scales), target));
  return Emit(c, target, OldAttributes(c));
}

ir::AttributeSet ResizeAttributes(NodeContext& c) {
  ir::AttributeSet attributes = {
      {"mode", c.String("mode", "nearest")},
      {"coordinates", c.String("coordinate_transformation_mode", "half_pixel")}};
  const std::string mode = c.String("mode", "nearest");
  if (mode == "nearest") {
    attributes.Set("nearest_mode", c.String("nearest_mode", "round_prefer_floor"));
  }
  if (mode == "cubic") attributes.Set("cubic_coeff_a", c.Float("cubic_coeff_a", -0.75));
  if (c.Int("exclude_outside", 0) != 0) attributes.Set("exclude_outside", int64_t{1});
  if (c.Int("antialias", 0) != 0) attributes.Set("antialias", int64_t{1});
  if (const double value = c.Float("extrapolation_value", 0); value != 0) {
    attributes.Set("extrapolation_value", value);
  }
  return attributes;
}

absl::Status LowerResize(NodeContext& c) {
  if (c.opset() < 11) return LowerUpsample(c);
  Target target{.axes = AllAxes(c), .sizes = {}, .scales = {}, .roi = {}};
  if (c.Attribute("axes") != nullptr) target.axes = c.Ints("axes");
  for (int64_t& axis : target.axes) {
    ORRERY_ASSIGN_OR_RETURN(const size_t position,
                            ir::NormalizeAxis(axis, c.input_type(0).dims.size()));
    axis = static_cast<int64_t>(position);
  }
  const ir::AttributeSet attributes = ResizeAttributes(c);
  if (attributes.String("coordinates", "") == "tf_crop_and_resize" && c.has_input(1)) {
    ORRERY_ASSIGN_OR_RETURN(target.roi, NumbersInput(c, 1));
    ORRERY_RETURN_IF_ERROR(CheckCount("numbers of roi", target.roi.size(), target.axes.size(), 2));
  }
  std::vector<double> scales;
  if (c.has_input(2)) {
    ORRERY_ASSIGN_OR_RETURN(scales, NumbersInput(c, 2));
  }
  if (c.has_input(3) && scales.empty()) {
    ORRERY_RETURN_IF_ERROR(SetSizes(c, 3, target));
  } else {
    ORRERY_RETURN_IF_ERROR(SetScales(c, std::move(scales), target));
  }
  return Emit(c, target, attributes);
}

}  // namespace
}  // namespace resize_cc

extern const OnnxOp kResizeOnnxOp = {
    .type = "Resize", .since_opset = 10, .lower = resize_cc::LowerResize};

extern const OnnxOp kUpsampleOnnxOp = {
    .type = "Upsample", .inputs = 2, .since_opset = 9, .lower = resize_cc::LowerUpsample};

}  // namespace orrery::importer
