#include "cluster/link.h"

#include <algorithm>
#include <limits>

#include "support/check.h"

namespace orrery::cluster {
namespace link_cc {
namespace {

constexpr int64_t kMost = std::numeric_limits<int64_t>::max();

}  // namespace
}  // namespace link_cc

PathInfo Join(const PathInfo& first, const PathInfo& second) {
  return {.rate = std::min(first.rate, second.rate), .latency = first.latency + second.latency};
}

Bandwidth Aggregate(Bandwidth rate, int64_t count) {
  ORRERY_CHECK(count >= 0) << count << " links";
  if (count == 0) return Bandwidth(0);
  return Bandwidth(rate.bytes_per_second() > link_cc::kMost / count
                       ? link_cc::kMost
                       : rate.bytes_per_second() * count);
}

Bandwidth Sum(Bandwidth first, Bandwidth second) {
  const bool fits = first.bytes_per_second() <= link_cc::kMost - second.bytes_per_second();
  return Bandwidth(fits ? first.bytes_per_second() + second.bytes_per_second() : link_cc::kMost);
}

}  // namespace orrery::cluster
