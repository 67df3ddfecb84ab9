#include "search/cuts/cut_choice.h"

#include <algorithm>
#include <optional>

#include "support/check.h"
#include "transforms/stages/cost_division.h"

namespace orrery::search {

bool IsBetter(const simulator::Report& a, const simulator::Report& b) {
  if (a.fits != b.fits) return a.fits;
  if (!a.fits && a.peak_memory != b.peak_memory) return a.peak_memory < b.peak_memory;
  return a.step_time < b.step_time;
}

size_t TakenCut(std::span<const PlayedCut> cuts) {
  ORRERY_CHECK(!cuts.empty());
  std::optional<Duration> fastest;
  for (const PlayedCut& cut : cuts) {
    if (cut.fits) fastest = std::min(fastest.value_or(cut.time), cut.time);
  }
  const auto may_be = [&](const PlayedCut& cut) {
    if (!fastest.has_value()) return true;
    return cut.fits && (!cuts.back().fits || cut.time <= cuts.back().time) &&
           cut.time.seconds() <= transforms::kAboutAsFast * fastest->seconds();
  };
  std::optional<size_t> taken;
  for (size_t i = 0; i < cuts.size(); ++i) {
    if (!may_be(cuts[i])) continue;
    const bool leaner = !taken.has_value() || cuts[i].peak < cuts[*taken].peak ||
                        (cuts[i].peak == cuts[*taken].peak && cuts[i].time < cuts[*taken].time);
    if (leaner) taken = i;
  }
  return *taken;
}

}  // namespace orrery::search
