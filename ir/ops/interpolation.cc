#include "ir/ops/interpolation.h"

#include <algorithm>
#include <cmath>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/string_view.h"

namespace orrery::ir {
namespace interpolation_cc {
namespace {

constexpr absl::string_view kModes[] = {"nearest", "linear", "cubic"};
constexpr absl::string_view kCoordinates[] = {
    "half_pixel", "half_pixel_symmetric", "pytorch_half_pixel", "align_corners",
    "asymmetric", "tf_half_pixel_for_nn", "tf_crop_and_resize"};
constexpr absl::string_view kNearestModes[] = {"round_prefer_floor", "round_prefer_ceil", "floor",
                                               "ceil"};

template <typename List>
absl::Status CheckOneOf(const AttributeSet& attributes, absl::string_view name, const List& list) {
  const std::string value = attributes.String(name, list[0]);
  if (std::find(std::begin(list), std::end(list), value) != std::end(list)) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(
      absl::StrCat(name, "=\"", value, "\"; wanted one of ", absl::StrJoin(list, ", ")));
}

std::vector<double> Doubles(const AttributeSet& attributes, absl::string_view name) {
  const Attribute* attribute = attributes.Find(name);
  const auto* list = attribute == nullptr ? nullptr : std::get_if<std::vector<double>>(attribute);
  return list == nullptr ? std::vector<double>() : *list;
}

struct Axis {
  double from = 1;            // elements that were there
  double scale = 1;           // elements made of each of them
  double to = 1;              // elements of the result
  double begin = 0, end = 1;  // of what is cropped, as shares
};

// Where position `i` of the result lies among the elements that were there.
double Coordinate(const Axis& axis, absl::string_view how, double i) {
  const double stretched = axis.scale * axis.from;  // not rounded, as `to` is
  if (how == "align_corners") {
    return stretched == 1 ? 0 : i * (axis.from - 1) / (stretched - 1);
  }
  if (how == "asymmetric") return i / axis.scale;
  if (how == "tf_half_pixel_for_nn") return (i + 0.5) / axis.scale;
  if (how == "pytorch_half_pixel" && stretched == 1) return -0.5;
  if (how == "tf_crop_and_resize") {
    const double last = axis.from - 1, share = axis.end - axis.begin;
    if (stretched == 1) return axis.begin * last + share * last / 2;
    return axis.begin * last + i * share * last / (stretched - 1);
  }
  const double half_pixel = (i + 0.5) / axis.scale - 0.5;
  if (how != "half_pixel_symmetric") return half_pixel;
  return half_pixel + axis.from / 2 * (1 - axis.to / stretched);
}

// Keys' cubic convolution kernel (1981) with parameter a.
double Cubic(double x, double a) {
  x = std::abs(x);
  if (x <= 1) return ((a + 2) * x - (a + 3)) * x * x + 1;
  if (x < 2) return a * (((x - 5) * x + 8) * x - 4);
  return 0;
}

double NearestWeight(double distance, absl::string_view mode) {
  // `distance` from the position on the left, in (0, 1]; this is the weight of the one on the
  // right.
  if (distance == 1) return 1;
  if (mode == "round_prefer_floor") return distance > 0.5 ? 1 : 0;
  if (mode == "round_prefer_ceil") return distance >= 0.5 ? 1 : 0;
  return mode == "ceil" ? 1 : 0;
}

class Interpolation {
 public:
  explicit Interpolation(const AttributeSet& attributes)
      : mode_(attributes.String("mode", "nearest")),
        nearest_mode_(attributes.String("nearest_mode", "round_prefer_floor")),
        a_(attributes.Number("cubic_coeff_a", -0.75)),
        excludes_outside_(attributes.Int("exclude_outside", 0) != 0),
        antialias_(attributes.Int("antialias", 0) != 0) {}

  // The elements to the left and right of `x` in a dimension of `size`. What reaches beyond it
  // repeats the outermost one, or has no weight. Where fewer elements come out than went in,
  // antialiasing widens the kernel.
  std::vector<std::pair<int64_t, double>> TapsAt(double x, double scale, int64_t size) const {
    const auto left = static_cast<int64_t>(std::ceil(x)) - 1;
    const double ratio = x - static_cast<double>(left);
    const double narrowed = antialias_ ? std::min(scale, 1.0) : 1.0;
    const double radius = mode_ == "cubic" ? 2 : 1;
    const auto start = static_cast<int64_t>(std::floor(-radius / narrowed)) + 1;
    std::vector<std::pair<int64_t, double>> taps;
    double sum = 0;
    for (int64_t i = start; i < 2 - start; ++i) {
      const int64_t position = left + i;
      const bool is_there = position >= 0 && position < size;
      if (!is_there && excludes_outside_) continue;
      const double weight = Weight((static_cast<double>(i) - ratio) * narrowed, i, ratio);
      sum += weight;
      taps.emplace_back(std::clamp<int64_t>(position, 0, size - 1), weight);
    }
    for (auto& [position, weight] : taps) weight = sum == 0 ? 0 : weight / sum;
    return taps;
  }

 private:
  double Weight(double distance, int64_t i, double ratio) const {
    if (mode_ == "cubic") return Cubic(distance, a_);
    if (mode_ == "linear") return std::max(0.0, 1 - std::abs(distance));
    const double right = NearestWeight(ratio, nearest_mode_);
    return i == 1 ? right : i == 0 ? 1 - right : 0;
  }

  std::string mode_, nearest_mode_;
  double a_;
  bool excludes_outside_, antialias_;
};

}  // namespace
}  // namespace interpolation_cc

absl::Status CheckInterpolation(const AttributeSet& attributes) {
  for (const absl::Status& status :
       {interpolation_cc::CheckOneOf(attributes, "mode", interpolation_cc::kModes),
        interpolation_cc::CheckOneOf(attributes, "coordinates", interpolation_cc::kCoordinates),
        interpolation_cc::CheckOneOf(attributes, "nearest_mode",
                                     interpolation_cc::kNearestModes)}) {
    if (!status.ok()) return status;
  }
  const size_t axes = attributes.Ints("axes").size();
  const std::vector<double> scales = interpolation_cc::Doubles(attributes, "scales"),
                            roi = interpolation_cc::Doubles(attributes, "roi");
  const bool fits =
      (scales.empty() || scales.size() == axes) && (roi.empty() || roi.size() == 2 * axes) &&
      std::all_of(scales.begin(), scales.end(), [](double n) { return n > 1e-4 && n < 1e9; }) &&
      std::all_of(roi.begin(), roi.end(), [](double n) { return std::abs(n) < 1e9; });
  if (fits) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      "scales=[", absl::StrJoin(scales, ","), "] and roi=[", absl::StrJoin(roi, ","), "] for ",
      axes, " axes; wanted a positive scale and a begin and an end for each, or none"));
}

int64_t TapsOf(const AttributeSet& attributes) {
  const std::string mode = attributes.String("mode", "nearest");
  return mode == "cubic" ? 4 : mode == "linear" ? 2 : 1;
}

std::vector<Blend> BlendsAlong(const AttributeSet& attributes, size_t i, int64_t from, int64_t to) {
  const std::vector<double> scales = interpolation_cc::Doubles(attributes, "scales"),
                            roi = interpolation_cc::Doubles(attributes, "roi");
  const std::string how = attributes.String("coordinates", "half_pixel");
  interpolation_cc::Axis axis{.from = static_cast<double>(from), .to = static_cast<double>(to)};
  axis.scale = scales.empty() ? axis.to / axis.from : scales[i];
  if (!roi.empty()) {
    axis.begin = roi[i];
    axis.end = roi[i + roi.size() / 2];
  }
  const interpolation_cc::Interpolation interpolation(attributes);
  std::vector<Blend> blends;
  for (int64_t position = 0; position < to; ++position) {
    const double x = interpolation_cc::Coordinate(axis, how, static_cast<double>(position));
    const bool outside = how == "tf_crop_and_resize" && (x < 0 || x > axis.from - 1);
    // Far outside only the outermost elements count.
    const double near = std::clamp(x, -4.0, axis.from + 4);
    blends.push_back({.taps = interpolation.TapsAt(near, axis.scale, from), .is_outside = outside});
    if (outside) blends.back().taps.clear();
  }
  return blends;
}

}  // namespace orrery::ir
