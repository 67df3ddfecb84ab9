#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "ir/builder.h"
#include "ir/op_info.h"
#include "ir/op_kind.h"
#include "ir/ops/checks.h"
#include "ir/ops/kernels.h"
#include "support/status.h"

// Regions of an image [batch,channels,height,width] at one size: RoiAlign reads it between pixels
// (He et al. 2017), RoiMaxPool takes the largest pixel of each bin (Girshick 2015). The regions
// differ in the image that they are of, so that only channels can be split.

namespace orrery::ir {
namespace roi_cc {
namespace {

// `pooled` height and width of the result.
absl::StatusOr<Dims> PooledDims(const OpTypes& op, int64_t columns) {
  ORRERY_RETURN_IF_ERROR(CheckFloat(op, 0));
  ORRERY_RETURN_IF_ERROR(CheckFloat(op, 1));
  const Dims &x = op.operands[0]->dims, &regions = op.operands[1]->dims;
  if (x.size() != 4 || regions.size() != 2 || regions[1] != columns) {
    return absl::InvalidArgumentError(
        absl::StrCat("got shapes ", Show(x), " and ", Show(regions),
                     "; wanted [batch,channels,height,width] and [regions,", columns, "]"));
  }
  const std::vector<int64_t> pooled = op.attributes.Ints("pooled");
  if (pooled.size() != 2 || pooled[0] < 1 || pooled[1] < 1 ||
      std::max(pooled[0], pooled[1]) > (int64_t{1} << 30)) {
    return absl::InvalidArgumentError("pooled is no height and width of at least 1");
  }
  return Dims{regions[0], x[1], pooled[0], pooled[1]};
}

absl::Status CheckAlign(const OpTypes& op) {
  ORRERY_RETURN_IF_ERROR(CheckInteger(op, 2));
  const std::string mode = op.attributes.String("mode", "avg");
  if (mode != "avg" && mode != "max") {
    return absl::InvalidArgumentError(absl::StrCat("mode is \"", mode, "\"; wanted avg or max"));
  }
  const int64_t ratio = op.attributes.Int("sampling_ratio", 0);
  if (ratio < 0 || ratio > 1024) {
    return absl::InvalidArgumentError(absl::StrCat("sampling_ratio=", ratio, "; wanted 0 to 1024"));
  }
  if (op.operands[1]->dims.empty()) return absl::InvalidArgumentError("got no regions");
  return CheckDims(op, 2, {op.operands[1]->dims[0]}, "(the image of each region)");
}

absl::Status InferRoiAlign(const OpTypes& op, TypeList& results) {
  ORRERY_RETURN_IF_ERROR(CheckAlign(op));
  ORRERY_ASSIGN_OR_RETURN(const Dims dims, PooledDims(op, 4));
  AddResult(results, op.operands[0]->dtype, dims);
  return absl::OkStatus();
}

absl::Status InferRoiAlignGrad(const OpTypes& op, TypeList& results) {
  ORRERY_RETURN_IF_ERROR(CheckAlign(op));
  ORRERY_ASSIGN_OR_RETURN(const Dims dims, PooledDims(op, 4));
  ORRERY_RETURN_IF_ERROR(CheckDims(op, 3, dims, "as the result"));
  ORRERY_RETURN_IF_ERROR(CheckFloat(op, 3));
  return InferUnary(op, results);
}

absl::Status InferRoiMaxPool(const OpTypes& op, TypeList& results) {
  ORRERY_ASSIGN_OR_RETURN(const Dims dims, PooledDims(op, 5));
  AddResult(results, op.operands[0]->dtype, dims);
  return absl::OkStatus();
}

absl::Status InferRoiMaxPoolGrad(const OpTypes& op, TypeList& results) {
  ORRERY_ASSIGN_OR_RETURN(const Dims dims, PooledDims(op, 5));
  ORRERY_RETURN_IF_ERROR(CheckDims(op, 2, dims, "as the result"));
  ORRERY_RETURN_IF_ERROR(CheckFloat(op, 2));
  return InferUnary(op, results);
}

ShardingRule ChannelSharding(const OpTypes& op, const TypeList& results) {
  const auto factors = [](const TensorType& type) {
    ShardingRule::Factors row(type.dims.size(), kNoFactor);
    if (row.size() == 4) row[1] = 0;
    return row;
  };
  ShardingRule rule;
  for (const TensorType* operand : op.operands) rule.operands.push_back(factors(*operand));
  for (const TensorType& result : results) rule.results.push_back(factors(result));
  return rule;
}

// Bilinear interpolation of about four points a bin.
double AlignFlops(const OpTypes& op, const Dims& pooled) {
  const int64_t ratio = op.attributes.Int("sampling_ratio", 0);
  const auto samples = static_cast<double>(ratio > 0 ? ratio * ratio : 4);
  return 8 * samples * static_cast<double>(ElementCount(pooled));
}

constexpr int64_t kMaxSamples = 1 << 16;  // of a bin

struct Tap {
  int64_t offset;
  double weight;
};

// The up to four pixels around a point, or none for a point that is outside.
std::vector<Tap> TapsAt(double y, double x, int64_t height, int64_t width) {
  const bool inside = y >= -1 && x >= -1 && y <= static_cast<double>(height) &&
                      x <= static_cast<double>(width) && height > 0 && width > 0;
  if (!inside) return {};
  const auto low = [](double& at, int64_t size) {
    at = std::clamp(at, 0.0, static_cast<double>(size) - 1);
    return static_cast<int64_t>(at);
  };
  const int64_t top = low(y, height), left = low(x, width);
  const int64_t bottom = std::min(top + 1, height - 1), right = std::min(left + 1, width - 1);
  const double down = y - static_cast<double>(top), across = x - static_cast<double>(left);
  return {{top * width + left, (1 - down) * (1 - across)},
          {top * width + right, (1 - down) * across},
          {bottom * width + left, down * (1 - across)},
          {bottom * width + right, down * across}};
}

// A region along one dimension.
struct Side {
  double start, bin;
  int64_t samples;  // a bin
};

Side SideOf(const AttributeSet& attributes, double from, double to, int64_t bins) {
  const double scale = attributes.Number("spatial_scale", 1);
  const bool half = attributes.Int("half_pixel", 0) != 0;
  const double start = from * scale - (half ? 0.5 : 0);
  double size = to * scale - (half ? 0.5 : 0) - start;
  if (!half) size = std::max(size, 1.0);
  const int64_t ratio = attributes.Int("sampling_ratio", 0);
  const double adaptive = std::ceil(size / static_cast<double>(bins));
  return {.start = start,
          .bin = size / static_cast<double>(bins),
          .samples = ratio > 0      ? ratio
                     : adaptive > 0 ? static_cast<int64_t>(std::min(adaptive, 4096.0))
                                    : 0};
}

// What bin (row, column) of one region reads; the weights add up to 1 in a mean.
std::vector<Tap> BinTaps(const Side& vertical, const Side& horizontal, const Dims& bin,
                         const Dims& image, bool mean) {
  std::vector<Tap> taps;
  const auto point = [](const Side& side, int64_t bin, int64_t i) {
    return side.start + static_cast<double>(bin) * side.bin +
           (static_cast<double>(i) + 0.5) * side.bin / static_cast<double>(side.samples);
  };
  for (int64_t i = 0; i < vertical.samples; ++i) {
    for (int64_t j = 0; j < horizontal.samples; ++j) {
      for (const Tap& tap :
           TapsAt(point(vertical, bin[0], i), point(horizontal, bin[1], j), image[2], image[3])) {
        taps.push_back(tap);
      }
    }
  }
  if (!mean) return taps;
  const auto count =
      static_cast<double>(std::max<int64_t>(vertical.samples * horizontal.samples, 1));
  for (Tap& tap : taps) tap.weight /= count;
  return taps;
}

bool TakesMaximum(const Evaluation& e) { return e.attributes.String("mode", "avg") == "max"; }

// Calls f(first pixel of the plane, element of the result, taps) for each bin and channel.
template <typename F>
absl::Status ForEachBin(const Evaluation& e, const Dims& pooled, F f) {
  const Dims& image = e.operand(0).dims();
  const int64_t pixels = image[2] * image[3];
  const Tensor& regions = e.operand(1);
  for (int64_t region = 0; region < pooled[0]; ++region) {
    const int64_t sample = e.operand(2).ints()[static_cast<size_t>(region)];
    if (sample < 0 || sample >= image[0]) {
      return absl::InvalidArgumentError(
          absl::StrCat("region ", region, " is of image ", sample, " of ", image[0]));
    }
    const auto corner = [&](int64_t i) { return regions.Number(region * 4 + i); };
    const Side vertical = SideOf(e.attributes, corner(1), corner(3), pooled[2]);
    const Side horizontal = SideOf(e.attributes, corner(0), corner(2), pooled[3]);
    if (vertical.samples * horizontal.samples > kMaxSamples) {
      return absl::ResourceExhaustedError("a region is too large to compute");
    }
    for (int64_t bin = 0; bin < pooled[2] * pooled[3]; ++bin) {
      const std::vector<Tap> taps = BinTaps(
          vertical, horizontal, {bin / pooled[3], bin % pooled[3]}, image, !TakesMaximum(e));
      for (int64_t channel = 0; channel < pooled[1]; ++channel) {
        f((sample * image[1] + channel) * pixels,
          (region * pooled[1] + channel) * pooled[2] * pooled[3] + bin, taps);
      }
    }
  }
  return absl::OkStatus();
}

// The tap of the largest weighted pixel: mode max compares these, not the interpolated points.
const Tap* LargestTap(const Tensor& x, int64_t plane, const std::vector<Tap>& taps) {
  const Tap* largest = nullptr;
  for (const Tap& tap : taps) {
    if (largest == nullptr || tap.weight * x.Number(plane + tap.offset) >
                                  largest->weight * x.Number(plane + largest->offset)) {
      largest = &tap;
    }
  }
  return largest;
}

absl::Status EvaluateRoiAlign(Evaluation& e) {
  const Tensor& x = e.operand(0);
  Tensor& y = e.results[0];
  return ForEachBin(e, y.dims(), [&](int64_t plane, int64_t to, const std::vector<Tap>& taps) {
    double value = 0;
    if (TakesMaximum(e)) {
      const Tap* largest = LargestTap(x, plane, taps);
      if (largest != nullptr) value = largest->weight * x.Number(plane + largest->offset);
    } else {
      for (const Tap& tap : taps) value += tap.weight * x.Number(plane + tap.offset);
    }
    y.SetNumber(to, value);
  });
}

absl::Status EvaluateRoiAlignGrad(Evaluation& e) {
  const Tensor &x = e.operand(0), &dy = e.operand(3);
  auto& dx = e.results[0].floats();
  return ForEachBin(e, dy.dims(), [&](int64_t plane, int64_t to, const std::vector<Tap>& taps) {
    if (!TakesMaximum(e)) {
      for (const Tap& tap : taps) {
        dx[static_cast<size_t>(plane + tap.offset)] += tap.weight * dy.Number(to);
      }
      return;
    }
    const Tap* largest = LargestTap(x, plane, taps);
    if (largest == nullptr) return;
    dx[static_cast<size_t>(plane + largest->offset)] += largest->weight * dy.Number(to);
  });
}

// RoiMaxPool: bins are whole pixels, rounded outwards.
struct Range {
  int64_t from, to;
};

Range BinRange(double from, double to, double scale, int64_t bin, int64_t bins, int64_t size) {
  const double start = std::round(from * scale), end = std::round(to * scale);
  const double length = std::max(end - start + 1, 1.0) / static_cast<double>(bins);
  const auto cut = [size](double at) {
    if (at >= static_cast<double>(size)) return size;
    return at > 0 ? static_cast<int64_t>(at) : 0;
  };
  return {cut(std::floor(static_cast<double>(bin) * length) + start),
          cut(std::ceil(static_cast<double>(bin + 1) * length) + start)};
}

// Calls f(element of the result, its pixel or -1).
template <typename F>
absl::Status ForEachLargest(const Evaluation& e, const Dims& pooled, F f) {
  const Tensor &x = e.operand(0), &regions = e.operand(1);
  const Dims& image = x.dims();
  const double scale = e.attributes.Number("spatial_scale", 1);
  for (Odometer at(pooled, {}); !at.done(); at.Next()) {
    const int64_t region = at.at()[0];
    const auto corner = [&](int64_t i) { return regions.Number(region * 5 + i); };
    if (!(corner(0) >= 0 && corner(0) < static_cast<double>(image[0]))) {
      return absl::InvalidArgumentError(absl::StrCat("region ", region, " is of no image"));
    }
    const int64_t plane = static_cast<int64_t>(corner(0)) * image[1] + at.at()[1];
    const Range rows = BinRange(corner(2), corner(4), scale, at.at()[2], pooled[2], image[2]);
    const Range columns = BinRange(corner(1), corner(3), scale, at.at()[3], pooled[3], image[3]);
    int64_t largest = -1;
    for (int64_t row = rows.from; row < rows.to; ++row) {
      for (int64_t column = columns.from; column < columns.to; ++column) {
        const int64_t pixel = (plane * image[2] + row) * image[3] + column;
        if (largest < 0 || x.Number(pixel) > x.Number(largest)) largest = pixel;
      }
    }
    f(at.index(), largest);
  }
  return absl::OkStatus();
}

absl::Status EvaluateRoiMaxPool(Evaluation& e) {
  return ForEachLargest(e, e.results[0].dims(), [&](int64_t to, int64_t pixel) {
    if (pixel >= 0) e.results[0].CopyElement(to, e.operand(0), pixel);
  });
}

absl::Status EvaluateRoiMaxPoolGrad(Evaluation& e) {
  return ForEachLargest(e, e.operand(2).dims(), [&](int64_t to, int64_t pixel) {
    if (pixel >= 0) e.results[0].floats()[static_cast<size_t>(pixel)] += e.operand(2).Number(to);
  });
}

// The gradient op reads all operands, and the gradient of the result.
template <OpKind kind>
absl::Status RegionGradient(GradientContext& c) {
  std::vector<ValueId> operands;
  for (int i = 0; i < c.operand_count(); ++i) operands.push_back(c.operand(i));
  operands.push_back(c.result_gradient());
  c.SetOperandGradient(0, c.builder().Op(kind, operands, c.GradientName(0), c.attributes()));
  return c.builder().status();
}

}  // namespace
}  // namespace roi_cc

extern const OpInfo kRoiAlignOp = {
    .name = "RoiAlign",
    .summary =
        "regions [regions,4] of image [batch,channels,height,width], each of the image that "
        "operand 2 says, in `pooled` bins of the mean (or max) of points between pixels",
    .operands = 3,
    .infer = roi_cc::InferRoiAlign,
    .flops = [](const OpTypes& op,
                const TypeList& results) { return roi_cc::AlignFlops(op, results[0].dims); },
    .sharding = roi_cc::ChannelSharding,
    .evaluate = roi_cc::EvaluateRoiAlign,
    .gradient = roi_cc::RegionGradient<OpKind::kRoiAlignGrad>,
    .no_gradient = 0b110,
};

extern const OpInfo kRoiAlignGradOp = {
    .name = "RoiAlignGrad",
    .summary = "gradient of the image of RoiAlign from its operands and that of its result",
    .operands = 4,
    .infer = roi_cc::InferRoiAlignGrad,
    .flops = [](const OpTypes& op,
                const TypeList&) { return roi_cc::AlignFlops(op, op.operands[3]->dims); },
    .sharding = roi_cc::ChannelSharding,
    .evaluate = roi_cc::EvaluateRoiAlignGrad,
};

extern const OpInfo kRoiMaxPoolOp = {
    .name = "RoiMaxPool",
    .summary =
        "regions [regions,5] (image, corners) of image [batch,channels,height,width] in "
        "`pooled` bins of the largest pixel",
    .operands = 2,
    .infer = roi_cc::InferRoiMaxPool,
    .flops = OneFlopAnElement,
    .sharding = roi_cc::ChannelSharding,
    .evaluate = roi_cc::EvaluateRoiMaxPool,
    .gradient = roi_cc::RegionGradient<OpKind::kRoiMaxPoolGrad>,
    .no_gradient = 0b10,
};

extern const OpInfo kRoiMaxPoolGradOp = {
    .name = "RoiMaxPoolGrad",
    .summary = "gradient of the image of RoiMaxPool from its operands and that of its result",
    .operands = 3,
    .infer = roi_cc::InferRoiMaxPoolGrad,
    .flops = OneFlopAnElement,
    .sharding = roi_cc::ChannelSharding,
    .evaluate = roi_cc::EvaluateRoiMaxPoolGrad,
};

}  // namespace orrery::ir
