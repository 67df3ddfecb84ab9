#include "simulator/network/link_use.h"

#include <algorithm>
#include <cmath>

#include "support/check.h"

namespace orrery::simulator {
namespace link_use_cc {
namespace {

// Sums of rates that are equal but for rounding are equal.
constexpr double kTolerance = 1e-9;

bool Same(double a, double b) { return std::abs(a - b) <= kTolerance * std::max(a, b); }

}  // namespace
}  // namespace link_use_cc

LinkUse::LinkUse(const Program& program) : rows_(program.resource_count()) {
  for (int32_t i = 0; i < rows_.size(); ++i) {
    const Bandwidth capacity = program.resource(ResourceId(i)).capacity;
    rows_[ResourceId(i)].capacity = static_cast<double>(capacity.bytes_per_second());
  }
}

void LinkUse::Set(ResourceId resource, Time now, double bytes_per_second) {
  std::vector<UseInterval>& intervals = rows_[resource].intervals;
  ORRERY_DCHECK(intervals.empty() || intervals.back().from <= now) << resource;
  // What held for no time did not hold.
  if (!intervals.empty() && intervals.back().from == now) intervals.pop_back();
  const double before = intervals.empty() ? 0 : intervals.back().bytes_per_second;
  if (!link_use_cc::Same(before, bytes_per_second)) intervals.push_back({now, bytes_per_second});
}

void LinkUse::AddBytes(const Flow& flow) {
  const double size = static_cast<double>(flow.size.count());
  for (const Load& load : flow.loads) rows_[load.resource].bytes += size * load.load;
}

ResourceUse LinkUse::Summarize(ResourceId resource, Duration makespan) const {
  const Row& row = rows_[resource];
  ResourceUse use = {.bytes = row.bytes, .busy = {}, .full = {}};
  for (size_t i = 0; i < row.intervals.size(); ++i) {
    const UseInterval& interval = row.intervals[i];
    const Time to = i + 1 < row.intervals.size() ? row.intervals[i + 1].from : makespan;
    if (interval.bytes_per_second > 0) use.busy += to - interval.from;
    if (link_use_cc::Same(interval.bytes_per_second, row.capacity)) use.full += to - interval.from;
  }
  if (makespan > Duration(0)) use.utilization = row.bytes / (row.capacity * makespan.seconds());
  return use;
}

}  // namespace orrery::simulator
