#ifndef ORRERY_SEARCH_BOUNDS_TIME_BOUND_H_
#define ORRERY_SEARCH_BOUNDS_TIME_BOUND_H_

#include <cstdint>
#include <list>
#include <optional>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "cost_models/least_time.h"
#include "search/bounds/least_work.h"
#include "search/settings/setting.h"
#include "support/units.h"

// How long a step takes at least: docs/search.md argues it.

namespace orrery::search {

/// What one microbatch takes of a pipeline whose ranks hold a stage each, in any unit, all stages
/// together.
struct PipelineWork {
  double all = 0;
  /// Of `all`, what may go on beside the rest of the microbatch.
  double beside = 0;
  double gap = 0;  // of the rest, likewise where two stages meet
  /// In a stage outside of the chain, and in all such stages, without what is scattered.
  double outside = 0, all_outside = 0;
  double scattered = 0;  // of what is beside, may be in any stage
};

/// How long such a pipeline takes at least for `microbatches`, if every rank begins with a forward
/// and ends with a whole backward, however the model is cut.
double LeastPipelineTime(int64_t ranks, int64_t microbatches, const PipelineWork& work);

/// Whether a schedule may split backwards in a pipeline of that shape: that does not depend on how
/// many microbatches there are, nor on how many ranks beyond a few. True where nobody knows.
bool SplitsBackwards(const transforms::PipelineSchedule& schedule, transforms::PipelineShape shape);

/// The same, remembered by schedule, ranks and chunks.
class KnownSplits {
 public:
  /// SplitsBackwards of them.
  bool Of(const transforms::PipelineSchedule& schedule, const transforms::PipelineShape& shape);

 private:
  absl::flat_hash_map<std::pair<const transforms::PipelineSchedule*, int64_t>, bool> splits_;
};

/// Bounds of the time of plans of one setting. Remembers what plans share: not for several threads
/// at once.
class TimeBound {
 public:
  /// `setting` lives longer.
  explicit TimeBound(const Setting& setting);

  /// Never more than the step time of a run of the plan; 0: nothing can be told.
  Duration Of(const ParallelPlan& plan);

 private:
  // Of plans that rematerialize and copy alike. In few kinds: looked for in order.
  struct Known {
    transforms::RecomputePolicy policy;
    std::optional<ir::DType> copies;
    StepPrices prices;
    absl::flat_hash_map<WorkChoice, LeastWork> work = {};
  };
  // What a rank has to do for one microbatch on average over the stages, times their number.
  struct RankWork {
    double all = 0, sums = 0, forward = 0, backward = 0, gap = 0, outside = 0;
    double all_outside = 0;
    double again = 0, outside_again = 0;  // is rematerialized: in all; in a stage outside
    double update = 0;                    // of all stages, once a step
  };

  Known& KnownOf(const transforms::RecomputePolicy& policy, std::optional<ir::DType> copies);
  static const LeastWork& WorkOf(Known& known, const WorkChoice& choice);
  RankWork WorkOf(const ParallelPlan& plan, int64_t stages);
  // Whether ranks hold a stage each, and begin and end as LeastPipelineTime wants it.
  bool HasPlainOrders(const ParallelPlan& plan, const transforms::PipelineShape& shape);

  const Setting& setting_;
  const cost_models::LeastTimes* const model_;  // null: it promises nothing
  std::list<Known> known_;
  KnownSplits splits_;
};

}  // namespace orrery::search

#endif  // ORRERY_SEARCH_BOUNDS_TIME_BOUND_H_
