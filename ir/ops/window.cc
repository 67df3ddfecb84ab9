#include "ir/ops/window.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "ir/ops/kernels.h"
#include "ir/tensor.h"
#include "support/status.h"

namespace orrery::ir {
namespace window_cc {
namespace {

constexpr int64_t kLimit = int64_t{1} << 30;  // of kernels, strides, dilations and paddings

absl::StatusOr<Dims> List(const AttributeSet& attributes, absl::string_view name, size_t count,
                          int64_t least) {
  const std::vector<int64_t> values = attributes.Ints(name);
  if (attributes.Find(name) == nullptr) return Dims(count, least > 0 ? 1 : 0);
  bool fits = values.size() == count;
  for (const int64_t value : values) fits = fits && value >= least && value <= kLimit;
  if (fits) return Dims(values.begin(), values.end());
  return absl::InvalidArgumentError(absl::StrCat(
      name, "=[", absl::StrJoin(values, ","), "]; wanted ", count, " numbers of at least ", least));
}

}  // namespace
}  // namespace window_cc

absl::StatusOr<Window> WindowOf(const AttributeSet& attributes, const Dims& kernel) {
  const size_t rank = kernel.size();
  for (const int64_t size : kernel) {
    if (size >= 1 && size <= window_cc::kLimit) continue;
    return absl::InvalidArgumentError(
        absl::StrCat("the window is ", Show(kernel), "; wanted sizes of at least 1"));
  }
  Window window = {.kernel = kernel,
                   .strides = {},
                   .before = {},
                   .after = {},
                   .dilations = {},
                   .ceil = attributes.Int("ceil_mode", 0) != 0};
  ORRERY_ASSIGN_OR_RETURN(window.strides, window_cc::List(attributes, "strides", rank, 1));
  ORRERY_ASSIGN_OR_RETURN(window.dilations, window_cc::List(attributes, "dilations", rank, 1));
  ORRERY_ASSIGN_OR_RETURN(const Dims pads,
                          window_cc::List(attributes, "pads", 2 * rank, -window_cc::kLimit));
  const auto middle = pads.begin() + static_cast<std::ptrdiff_t>(rank);
  window.before = Dims(pads.begin(), middle);
  window.after = Dims(middle, pads.end());
  return window;
}

absl::StatusOr<Window> PoolWindow(const AttributeSet& attributes, size_t rank) {
  const std::vector<int64_t> kernel = attributes.Ints("kernel");
  if (kernel.size() == rank) return WindowOf(attributes, Dims(kernel.begin(), kernel.end()));
  return absl::InvalidArgumentError(absl::StrCat("kernel=[", absl::StrJoin(kernel, ","),
                                                 "]; wanted a size for each of ", rank,
                                                 " spatial dimensions"));
}

absl::StatusOr<Dims> WindowCounts(const Window& window, const Dims& input) {
  Dims counts;
  for (size_t d = 0; d < input.size(); ++d) {
    const int64_t room = input[d] + window.before[d] + window.after[d] - window.Reach(d);
    if (room < 0) {
      return absl::InvalidArgumentError(absl::StrCat(
          "a window that reaches over ", window.Reach(d), " does not fit into spatial dimension ",
          d, " of ", input[d], " with padding ", window.before[d], " and ", window.after[d]));
    }
    int64_t count = room / window.strides[d] + 1;
    if (window.ceil && room % window.strides[d] != 0 &&
        count * window.strides[d] < input[d] + window.before[d]) {
      ++count;
    }
    counts.push_back(count);
  }
  return counts;
}

Dims SpatialDims(const Dims& dims) {
  return Dims(dims.begin() + std::min<std::ptrdiff_t>(2, static_cast<std::ptrdiff_t>(dims.size())),
              dims.end());
}

absl::Status CheckTaps(const Window& window, const Dims& counts) {
  double taps = 1;
  for (size_t d = 0; d < counts.size(); ++d) {
    taps *= static_cast<double>(window.kernel[d]) * static_cast<double>(counts[d]);
  }
  if (taps < 1e8) return absl::OkStatus();
  return absl::ResourceExhaustedError(absl::StrCat("a window of ", Show(window.kernel), " at ",
                                                   Show(counts),
                                                   " positions is too much to compute"));
}

std::vector<int64_t> WindowTaps(const Window& window, const Dims& input, const Dims& counts) {
  std::vector<int64_t> taps;
  const Dims strides = StridesOf(input);
  for (Odometer element(window.kernel, {}); !element.done(); element.Next()) {
    for (Odometer position(counts, {}); !position.done(); position.Next()) {
      int64_t offset = 0;
      for (size_t d = 0; d < input.size() && offset >= 0; ++d) {
        const int64_t at = position.at()[d] * window.strides[d] - window.before[d] +
                           element.at()[d] * window.dilations[d];
        offset = at < 0 || at >= input[d] ? -1 : offset + at * strides[d];
      }
      taps.push_back(offset);
    }
  }
  return taps;
}

AttributeSet WindowAttributes(const AttributeSet& attributes) {
  AttributeSet window;
  for (const absl::string_view name :
       {"kernel", "strides", "pads", "dilations", "ceil_mode", "count_include_pad", "p"}) {
    if (const Attribute* found = attributes.Find(name)) window.Set(name, *found);
  }
  return window;
}

}  // namespace orrery::ir
