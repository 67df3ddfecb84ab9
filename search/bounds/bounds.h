#ifndef ORRERY_SEARCH_BOUNDS_BOUNDS_H_
#define ORRERY_SEARCH_BOUNDS_BOUNDS_H_

#include <cstdint>
#include <span>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "search/bounds/least_memory.h"
#include "search/bounds/time_bound.h"
#include "search/settings/setting.h"
#include "support/units.h"

// What no way to carry out a plan does without, in memory and in time, by sums over the model: no
// step is made for the plan. docs/search.md argues each.

namespace orrery::search {

/// Of one plan, each from below.
struct PlanBound {
  Bytes memory;   // that the fullest rank needs
  Duration time;  // of a step
};

/// Whether the bound of the plan's memory counts what forward leaves for backward.
bool CountsKept(const Setting& setting, const ParallelPlan& plan);

/// Forward activations that the fullest of the ranks of a pipeline keeps at once, beside what is
/// there all the time, at least. However the model is cut: `in_flight` are the microbatches that
/// each rank has at its peak, at least one, ascending; `kept` is what all ranks together keep of
/// one of them, `resident` what they hold all the time.
double LeastPeak(double resident, double kept, std::span<const int64_t> in_flight);

/// Microbatches of each rank of which it has run forward, on all of its stages, and not begun
/// backward.
struct InFlight {
  std::vector<int64_t> most;              // at the moment that has most
  std::vector<int64_t> beside_gradients;  // of those at which all its stages have gradients, or 0
};
/// Those that ranks with such orders have at least.
InFlight LeastInFlight(const transforms::RankOrders& orders,
                       const transforms::PipelineShape& shape);

/// The bounds of plans of one setting. Remembers what plans share: not for several threads at once.
class Bounds {
 public:
  /// `setting` lives longer.
  explicit Bounds(const Setting& setting);

  /// Never more than what `Play` says of the plan, of one that can be played.
  PlanBound Of(const ParallelPlan& plan);

 private:
  void SumGradients();
  double KeptOf(const ParallelPlan& plan);
  const InFlight& InFlightOf(const ParallelPlan& plan);
  Bytes MemoryOf(const ParallelPlan& plan);

  const Setting& setting_;
  const WeightBytes weights_;
  TimeBound time_;
  double gradients_ = 0;  // bytes, of all parameters
  // Bytes of the whole batch, by recomputation: there are few.
  std::vector<std::pair<transforms::RecomputePolicy, double>> kept_;
  absl::flat_hash_map<std::tuple<const transforms::PipelineSchedule*, int64_t, int64_t, int64_t>,
                      InFlight>
      in_flight_;  // ascending
};

}  // namespace orrery::search

#endif  // ORRERY_SEARCH_BOUNDS_BOUNDS_H_
