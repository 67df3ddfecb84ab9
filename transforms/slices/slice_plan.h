#ifndef ORRERY_TRANSFORMS_SLICES_SLICE_PLAN_H_
#define ORRERY_TRANSFORMS_SLICES_SLICE_PLAN_H_

#include <cstdint>
#include <functional>
#include <vector>

// How long the slices of a sequence should be, as TeraPipe's planner asks (Li et al., ICML 2021,
// section 3.3): later slices meet more keys, so slices that take equally long get shorter.

namespace orrery::transforms {

/// A sequence in units, and what slices of it take.
struct SlicePlanProblem {
  int64_t units = 1;   // that the sequence has, each of equally many positions
  int64_t slices = 1;  // from 1 to `units`
  /// How often the longest slice counts beside the sum, while the pipeline fills and drains: stages
  /// - 1 where all take equally long.
  double fill = 0;
  /// By what part of itself the time may be above the least: then fewer bounds are tried.
  double tolerance = 0;
  /// What the slowest stage takes for a slice of so many units that begins at a unit, forward and
  /// backward.
  std::function<double(int64_t begin, int64_t units)> seconds;
  /// What the pipeline takes in fact for slices of so many units; null: what the formula says.
  std::function<double(const std::vector<int64_t>& lengths)> exact = nullptr;
};

/// The units of each slice for which the pipeline takes the least: the sum over the slices, and
/// `fill` times the longest of them. For each bound on the longest, the least sum by dynamic
/// programming, over all bounds that may do better; of all these the one with the least `exact`
/// time. At most 256 units.
std::vector<int64_t> PlanSlices(const SlicePlanProblem& problem);

}  // namespace orrery::transforms

#endif  // ORRERY_TRANSFORMS_SLICES_SLICE_PLAN_H_
