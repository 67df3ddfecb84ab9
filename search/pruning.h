#ifndef ORRERY_SEARCH_PRUNING_H_
#define ORRERY_SEARCH_PRUNING_H_

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "search/bounds/bounds.h"
#include "search/bounds/likely_time.h"
#include "search/evaluate.h"
#include "search/goals/goal.h"

// What a search need not play, since its bounds say enough (docs/search.md).

namespace orrery::search {

/// The feasible results of which none other is faster, leaner (peak memory) and on fewer devices at
/// once: for each there is no other that is as good in all three and better in one. In the order of
/// the results; of those that are alike the first.
std::vector<const Result*> ParetoFront(const std::vector<Result>& results);

/// What is known of feasible results until now, as far as bounds ask for it.
class Incumbents {
 public:
  /// The `top` best by the goal count, at least one.
  explicit Incumbents(int64_t top, Goal goal = Goal::kTime)
      : top_(top < 1 ? 1 : static_cast<size_t>(top)), goal_(goal) {}

  /// Counts a result, where it is feasible.
  void Add(const Result& result);
  /// Whether no plan of so many ranks and of these bounds can be among the best, or on the Pareto
  /// front, whatever else is found: `top` results have a smaller key than the bounds (GoalKey),
  /// which is the least that the plan can have; and one that is faster is no larger on no more
  /// ranks. What beats a plan once beats it ever after.
  bool Beat(const PlanBound& bound, int64_t ranks) const;

 private:
  struct Point {
    Duration time;
    Bytes memory;
    int64_t ranks = 1;
  };

  const size_t top_;
  const Goal goal_;
  std::multiset<GoalKey> best_;  // at most `top_`
  std::vector<Point> front_;     // none of them worse than another in everything
};

/// The bounds of plans of a search, of whatever settings. Not for several threads at once.
class SearchBounds {
 public:
  /// `setting_of` lives longer. `likely`: what is likely is asked for, too.
  explicit SearchBounds(const SettingOf& setting_of, bool likely = false)
      : setting_of_(setting_of), likely_(likely) {}

  /// Those of the plan; of one of which nothing can be told, 0.
  PlanBound Of(const ParallelPlan& plan);
  /// Whether the last plan's bound of memory is more than there is.
  bool is_too_large() const { return is_too_large_; }
  /// Whether it is so near to that that the plan is likely not to fit.
  bool is_tight() const { return is_tight_; }
  /// Seconds that the last plan's step is likely to take (LikelyTime); 0: nobody asked.
  double likely_seconds() const { return likely_s_; }

 private:
  // Of plans of one setting.
  struct OfSetting {
    explicit OfSetting(const Setting& setting) : bounds(setting) {}
    Bounds bounds;
    std::optional<LikelyTime> likely = {};
  };

  const SettingOf& setting_of_;
  const bool likely_;
  bool is_too_large_ = false, is_tight_ = false;
  double likely_s_ = 0;
  std::map<const Setting*, OfSetting> settings_;  // looked up
};

/// The row of a plan that needs more memory by its bound than there is.
Result TooLarge(const Setting& setting, const ParallelPlan& plan, const PlanBound& bound);

/// The row of a plan that others beat whatever it takes: it has no figures, and is not infeasible
/// for all that is known.
Result Pruned(const ParallelPlan& plan, const PlanBound& bound);

}  // namespace orrery::search

#endif  // ORRERY_SEARCH_PRUNING_H_
