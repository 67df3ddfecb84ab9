#ifndef ORRERY_TRANSFORMS_SCHEDULES_ORDERS_H_
#define ORRERY_TRANSFORMS_SCHEDULES_ORDERS_H_

#include <cstdint>
#include <span>
#include <vector>

#include "absl/status/status.h"
#include "transforms/schedules/schedule.h"

// What follows from the orders of the ranks of a pipeline: whether they are orders at all, how long
// they take, what they keep in memory.
//
// What a step waits for, s counting the stages of one pipeline:
//   F of stage s: F of stage s-1.
//   B and I of stage s: F of stage s, and B or I of stage s+1.
//   W of stage s: I of stage s.
// Steps that run at once are timed one after the other, each when what it waits for is there: the
// work of both takes its time, and what they hide of each other's sends is for the simulator.

namespace orrery::transforms {

/// Gives every step its slot: the earliest unit time at which its rank is free and what it waits
/// for has finished, each step lasting one unit; of steps that run at once, what both wait for.
/// Aborts when the orders deadlock or have a step
/// that the shape has not: a schedule's bug.
void AssignSlots(RankOrders& orders, StagePlacement placement, const PipelineShape& shape);

/// Makes whole, on one rank, each backward that runs in two parts: all of it where its first part
/// was. Slots included. Requires orders of one rank.
void JoinParts(RankOrders& orders, StagePlacement placement, const PipelineShape& shape);

/// Checks, whatever the slots, that each rank runs just the steps of its stages, each forward once
/// and each backward once or both its parts once; and that no two ranks wait for each other, nor
/// one of two steps that run at once for the other. The
/// error names the step that is missing, doubled or misplaced, or the steps of the cycle.
absl::Status CheckOrders(const RankOrders& orders, StagePlacement placement,
                         const PipelineShape& shape);

/// In the unit of the durations, from the start of the first step.
struct StepTime {
  int64_t start = 0;
  int64_t finish = 0;

  friend bool operator==(const StepTime&, const StepTime&) = default;
};

/// When each step of an order runs, and how long ranks wait; in the unit of the durations.
struct Timing {
  std::vector<std::vector<StepTime>> steps;  // as the orders
  int64_t makespan = 0;
  std::vector<int64_t> idle;         // of each rank, until all ranks have finished
  std::vector<int64_t> idle_inside;  // of each rank, between its own first step and its last
};

/// What `steps` make: when each step of the orders runs, which lasts as long as `durations` say.
Timing TimingOf(const RankOrders& orders, std::vector<std::vector<StepTime>> steps,
                const StepDurations& durations);

/// When each step runs if each starts as early as it can. A rank may compute while it sends. Aborts
/// as AssignSlots does.
Timing TimeOrders(const RankOrders& orders, StagePlacement placement, const PipelineShape& shape,
                  const StepDurations& durations);

/// The most activations live on a rank, each of one stage and one microbatch, from the start of its
/// forward to the end of its B, or of its W.
int64_t PeakLive(std::span<const ScheduleStep> order);

/// Of each stage, how many updates of its weights lie between the forward of a microbatch and the
/// update that the microbatch's backward makes, at most, when every `microbatches_an_update`th
/// backward of a stage updates at once and forwards read the newest weights. 0: none is stale.
std::vector<int32_t> Staleness(const RankOrders& orders, int32_t stages,
                               int32_t microbatches_an_update);

}  // namespace orrery::transforms

#endif  // ORRERY_TRANSFORMS_SCHEDULES_ORDERS_H_
