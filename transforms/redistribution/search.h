#ifndef ORRERY_TRANSFORMS_REDISTRIBUTION_SEARCH_H_
#define ORRERY_TRANSFORMS_REDISTRIBUTION_SEARCH_H_

#include <cstdint>
#include <limits>
#include <optional>
#include <vector>

#include "transforms/redistribution/move_set.h"

// The cheapest steps from one layout to another.

namespace orrery::transforms::redistribution {

/// A step of a plan, with its price in the unit of the move set.
struct PlannedStep {
  Step step;
  double cost = 0;
  int64_t peak = 0;     // as in Move
  double creation = 0;  // of `cost`: of the group of ranks that it is the first to want
};

/// Steps from one layout to another, with what they cost together in the unit of the move set.
struct RedistributionPlan {
  std::vector<PlannedStep> steps;  // none where the layouts are one
  double cost = 0;                 // of all steps, one after the other
  int64_t peak = 0;                // the most elements that a rank holds at once, start and end too
  int64_t expanded = 0;            // layouts that the search looked at
  bool exact = true;               // no plan is better; false where the search gave up
};

/// A limit that binds nothing.
inline constexpr int64_t kNoLimit = std::numeric_limits<int64_t>::max();

/// The most layouts, reached in one way each, that a search keeps: half a gigabyte, and seconds.
inline constexpr int64_t kMaxLabels = int64_t{1} << 21;

/// What a plan, and the search for it, may use.
struct SearchLimits {
  int64_t peak = kNoLimit;  // elements, of each step
  int64_t labels = kMaxLabels;
};

/// The steps of the least cost among those whose peak stays within the limit; of equal costs
/// those of the least Move::tie, and of these the fewest steps. Last resorts only under a limit,
/// and where other moves have no way within what source and target take; there they are moves like
/// others, so that no limit gives a cheaper plan than a wider one. Nothing where those do not help
/// either. Label-setting (A* with the move set's bound): O(layouts × moves × log), exact. A search
/// over too many layouts gives up, and has the best plan that it met.
std::optional<RedistributionPlan> CheapestPlan(const MoveSet& move_set, const PackedLayout& from,
                                               const PackedLayout& to, const SearchLimits& limits);
/// The same for a limit of the peak alone.
inline std::optional<RedistributionPlan> CheapestPlan(const MoveSet& move_set,
                                                      const PackedLayout& from,
                                                      const PackedLayout& to,
                                                      int64_t limit = kNoLimit) {
  return CheapestPlan(move_set, from, to, SearchLimits{.peak = limit});
}

/// All plans of which none is both cheaper and smaller than another, the cheapest first.
std::vector<RedistributionPlan> ParetoPlans(const MoveSet& move_set, const PackedLayout& from,
                                            const PackedLayout& to);

/// The plan that takes `steps` from `from`, with costs and peaks.
RedistributionPlan Priced(const MoveSet& move_set, const PackedLayout& from,
                          const std::vector<Move>& moves);

}  // namespace orrery::transforms::redistribution

#endif  // ORRERY_TRANSFORMS_REDISTRIBUTION_SEARCH_H_
