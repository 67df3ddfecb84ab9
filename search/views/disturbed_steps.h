#ifndef ORRERY_SEARCH_VIEWS_DISTURBED_STEPS_H_
#define ORRERY_SEARCH_VIEWS_DISTURBED_STEPS_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "cluster/topology.h"
#include "search/evaluate.h"
#include "simulator/jitter/disturbances.h"
#include "simulator/jitter/step_series.h"
#include "support/units.h"

// A step of a plan, played many times with what disturbs it: how its time spreads, who waits for
// whom, and what each source of it costs.

namespace orrery::search {

/// Links that have a share of their rate.
struct DegradedLinks {
  std::string name = {};  // as it was asked for
  std::vector<cluster::LinkNumber> links = {};
  double share = 1;
};

/// What is asked of a plan that was played.
struct StepsQuestion {
  simulator::Disturbances disturbances;
  std::vector<DegradedLinks> links = {};
  int32_t steps = 1;
  size_t threads = 1;
};

/// How ranks that are alike are simulated, and what that makes of the figures.
enum class StepsFolding : uint8_t {
  kEachRank,       // each by itself
  kExact,          // as one, which changes no figure
  kFromBothSides,  // as one: the figures are bounds from above, those of one position from below
  kRoughly,        // as one, and links are shared or not alike: neither is a bound for sure
};

/// How long ranks of a class wait for others: means of a step and a rank.
struct RankWaits {
  int32_t rank = 0;  // the first of the class
  int64_t ranks = 1;
  double waits_s = 0;
  double undisturbed_s = 0;  // in the step as it should be: the bubble
  int32_t mostly_for = -1;   // the rank that it waits for more than then, the most; -1: none
  double for_it_s = 0;
};

/// A rank that others wait for.
struct LateRank {
  int32_t rank = 0;
  double share = 0;  // of all waiting beyond that of the undisturbed step: 0 to 1
};

/// What the steps would be without one source of what disturbs them; the others draw the same.
struct WithoutSource {
  std::string source;  // "rank", "slow rank=5"
  simulator::StepFigures figures;
};

/// What the steps came to. So many fields: figures of a report.
struct StepsAnswer {
  StepsFolding folding = StepsFolding::kEachRank;
  Duration undisturbed = {};
  /// Whether cost models' own allowance for stragglers is left out of all, as ranks draw by
  /// themselves (LoweringOptions::stragglers).
  bool own_stragglers = false;
  std::vector<Duration> times = {};  // of each step
  simulator::StepFigures figures = {};
  std::optional<simulator::StepFigures> at_least = {};  // where folding is not exact
  std::vector<RankWaits> waits = {};                    // by class
  std::vector<LateRank> late = {};                      // the latest first; at most 16
  std::vector<WithoutSource> without = {};              // in the order of the sources
  int64_t tasks = 0;                                    // that one step plays
};

/// How many times LoweringOptions::most_unfolded_tasks are simulated where folding is not exact:
/// they are lowered once, and a step of them takes a hundredth of that. Where links are shared, and
/// a step takes five times as long, no more than that many.
inline constexpr int64_t kUnfoldedTasksFactor = 16;

/// Plays the steps of `run`, a run of `plan`. `setting` is changed on the way and put back. Ranks
/// are folded where that is exact, and else where each by itself were too many tasks.
/// InvalidArgument for an asynchronous schedule, whose step has no end of its own; OutOfRange where
/// a step takes too long to be simulated.
absl::StatusOr<StepsAnswer> PlayDisturbed(Setting& setting, const ParallelPlan& plan,
                                          const Run& run, const StepsQuestion& question);

}  // namespace orrery::search

#endif  // ORRERY_SEARCH_VIEWS_DISTURBED_STEPS_H_
