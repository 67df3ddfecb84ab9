#include "search/cuts/way_facts.h"

#include <algorithm>
#include <numeric>

namespace orrery::search {

void WayFacts::Add(const lowering::StepBound& cut) {
  Add({.fastest = cut.likely_time,
       .communication = cut.communication,
       .peak = cut.likely_peak,
       .least_peak = cut.likely_peak,
       .bound = cut.peak,
       .least_time = cut.time});
}

void WayFacts::Add(const simulator::Report& run) {
  Add({.fastest = run.step_time,
       .communication = run.communication_overhead,
       .peak = run.peak_memory,
       .least_peak = run.peak_memory});
}

void WayFacts::Add(const WayFacts& part) {
  const bool first = fastest == Duration();
  if (first || part.fastest < fastest) {
    fastest = part.fastest;
    communication = part.communication;
    peak = part.peak;
  }
  least_peak = first ? part.least_peak : std::min(least_peak, part.least_peak);
  bound = first ? part.bound : std::min(bound, part.bound);
  least_time = first ? part.least_time : std::min(least_time, part.least_time);
}

bool CutBounds::known() const {
  return std::ranges::all_of(bounds_, [](const auto& bound) { return bound.has_value(); });
}

bool CutBounds::MayFit(size_t cut) const {
  return !bounds_[cut].has_value() || bounds_[cut]->may_fit;
}

bool CutBounds::MayBeat(const ToBeat& best) const {
  return std::ranges::any_of(bounds_, [&](const auto& bound) {
    if (!bound.has_value()) return true;
    return bound->may_fit && (!best.time.has_value() || bound->time < *best.time);
  });
}

std::vector<size_t> CutBounds::Order() const {
  std::vector<size_t> order(bounds_.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_partition(order.begin(), order.end(), [this](size_t cut) { return MayFit(cut); });
  return order;
}

}  // namespace orrery::search
