#ifndef ORRERY_TRANSFORMS_STAGES_STAGE_TIMING_H_
#define ORRERY_TRANSFORMS_STAGES_STAGE_TIMING_H_

#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "transforms/schedules/schedule.h"
#include "transforms/stages/stage_choice.h"

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

/// How many steps there are.
size_t StepCount(const ScheduledRanks& schedule);

/// Of one step of a schedule, where it is timed: with more, how its slowest rank compares is
/// enough.
inline constexpr size_t kMostStepsToTime = 2'000'000;

/// Times one schedule for stages of any lengths. What waits for what is found once.
class StepTimer {
 public:
  /// `stages`: of one pipeline; those of a second one are alike. Requires orders with slots.
  StepTimer(const ScheduledRanks& schedule, int32_t stages);

  /// Of one pipeline.
  int32_t stages() const { return stages_; }

  /// From the first step to the last update, when each step starts as soon as its rank is free and
  /// what it waits for has arrived (see orders.h), and a rank computes while it sends.
  double Seconds(std::span<const StageSeconds> stages) {
    return SecondsBelow(std::numeric_limits<double>::infinity(), stages);
  }

  /// The same where it is less than `limit`, else infinity, which is mostly found out sooner: a
  /// rank can no longer be done by then.
  double SecondsBelow(double limit, std::span<const StageSeconds> stages);

 private:
  struct Step {
    int32_t rank = 0;
    int32_t stage = 0;  // of its pipeline
    StepKind kind = StepKind::kForward;
    int32_t cell = 0;    // of finish_: where its own end goes
    int32_t own = 0;     // what it waits for on its rank; 0: for nothing
    int32_t sent = 0;    // what it waits for from another stage; 0: for nothing
    int32_t sender = 0;  // the later of both stages, whose `receive` it takes
  };

  /// How many of each kind.
  struct StageSteps {
    double forwards = 0, input_gradients = 0, weight_gradients = 0;  // a whole backward is both
  };

  void FindEnds(std::span<const StageSeconds> stages);

  int32_t stages_ = 0;
  std::vector<Step> steps_;         // each after what it waits for
  std::vector<int32_t> ranks_;      // of each stage, those of a second pipeline behind
  std::vector<double> free_;        // from when on, by rank
  std::vector<double> finish_;      // of each forward and backward; the first is of nothing
  std::vector<double> end_;         // of a rank that idles no more
  std::vector<StageSteps> counts_;  // by stage, those of a second pipeline behind
};

}  // namespace orrery::transforms

#endif  // ORRERY_TRANSFORMS_STAGES_STAGE_TIMING_H_
