#ifndef ORRERY_SUPPORT_TIME_SOURCE_H_
#define ORRERY_SUPPORT_TIME_SOURCE_H_

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>

#include "support/enum_names.h"

// Where the time of a kernel is from, for cost models that have measurements.

namespace orrery {

/// A measurement of this very kernel, measurements of kernels near it, or a model alone.
enum class TimeSource : uint8_t { kMeasured, kInterpolated, kModelled };
/// How many sources there are.
inline constexpr size_t kTimeSourceCount = 3;

/// Of some time, how much is from each source, by its number. As shares: of 1, or all 0 where the
/// cost model has no measurements at all.
using SourceShares = std::array<double, kTimeSourceCount>;

/// Whether there is no such time: no cost model with measurements was asked.
inline bool AreNone(const SourceShares& shares) {
  return std::ranges::all_of(shares, [](double share) { return share == 0; });
}

/// The names of the sources, as reports have them.
inline constexpr EnumNames<TimeSource, kTimeSourceCount> kTimeSourceNames(
    {{"measured", TimeSource::kMeasured},
     {"interpolated", TimeSource::kInterpolated},
     {"modelled", TimeSource::kModelled}});

}  // namespace orrery

#endif  // ORRERY_SUPPORT_TIME_SOURCE_H_
