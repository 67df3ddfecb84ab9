#ifndef ORRERY_TRANSFORMS_STAGE_TIMING_H_
#define ORRERY_TRANSFORMS_STAGE_TIMING_H_

#include <span>
#include <vector>

#include "transforms/schedules/schedule.h"
#include "transforms/stage_choice.h"

// How long a step takes when its stages do not last equally long: what tells divisions apart whose
// slowest stages are alike.

namespace orrery::transforms {

/// Of one stage, in seconds; all but the update for one microbatch.
struct StageSeconds {
  double forward = 0;
  double input_gradient = 0;   // with that of the weights, where backward is not split
  double weight_gradient = 0;  // where it is
  double update = 0;
  double receive = 0;  // from the stage before, and from the stage after to that one
};

/// From the first step to the last update, when each step starts as soon as its rank is free and
/// what it waits for has arrived (see orders.h), and a rank computes while it sends. `stages`: of
/// one pipeline; those of a second one are alike. Requires orders that do not deadlock.
double StepSeconds(const ScheduledRanks& schedule, std::span<const StageSeconds> stages);

}  // namespace orrery::transforms

#endif  // ORRERY_TRANSFORMS_STAGE_TIMING_H_
