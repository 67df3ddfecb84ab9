#ifndef ORRERY_TRANSFORMS_SCHEDULES_SCHEDULE_H_
#define ORRERY_TRANSFORMS_SCHEDULES_SCHEDULE_H_

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

// A pipeline schedule is a pure function: from the shape of a pipeline to the order in which each
// stage runs the forward and backward of each microbatch.
//
// Steps carry a time slot: when all steps last one unit and sends take no time, a step runs in its
// slot. Slots put the steps of all stages in one order that cannot deadlock, which is what a rank
// with one stream for everything needs.

namespace orrery::transforms {

enum class StepKind : uint8_t { kForward, kBackward };

struct ScheduleStep {
  StepKind kind = StepKind::kForward;
  int32_t microbatch = 0;
  int32_t slot = 0;  // unit times from the start of the step

  friend bool operator==(const ScheduleStep&, const ScheduleStep&) = default;
};

/// The steps of each stage, in the order in which the stage runs them; slots ascend strictly.
using StageOrders = std::vector<std::vector<ScheduleStep>>;

struct PipelineShape {
  int32_t stages = 1;        // >= 1
  int32_t microbatches = 1;  // >= 1
};

/// The one record of a schedule. All that a new one needs, besides its line in schedules.def.
struct PipelineSchedule {
  absl::string_view name;     // as on the command line: "1f1b"
  absl::string_view summary;  // one sentence
  absl::string_view source;   // the paper or program that it comes from
  /// The order of each stage. Requires a shape of at least one stage and one microbatch.
  StageOrders (*orders)(const PipelineShape& shape) = nullptr;
  /// True when weights are updated after each microbatch and the pipeline is never drained; a step
  /// is then measured in the steady state.
  bool asynchronous = false;
  /// Versions of its weights that a stage must keep; 1 for synchronous schedules.
  int32_t (*weight_versions)(const PipelineShape& shape, int32_t stage) = nullptr;
};

/// All schedules, in the order of schedules.def.
std::span<const PipelineSchedule* const> AllSchedules();

/// The schedule of that name; the error lists the names that there are.
absl::StatusOr<const PipelineSchedule*> FindSchedule(absl::string_view name);

/// Gives every step its slot: the earliest unit time at which the stage is free and what the step
/// waits for has finished (forward of the stage before; backward of the stage after; at the last
/// stage, its own forward). Aborts when the orders deadlock: a schedule's bug.
void AssignSlots(StageOrders& orders);

/// First free unit time after all steps: the makespan at unit times.
int32_t UnitMakespan(const StageOrders& orders);

/// The most microbatches whose forward has run on `order`'s stage and whose backward has not.
int32_t PeakLiveMicrobatches(std::span<const ScheduleStep> order);

/// Checks that each stage runs each forward and backward once, forward first, and that the slots
/// keep every dependency; names the first pair that does not.
absl::Status VerifyOrders(const StageOrders& orders, const PipelineShape& shape);

/// The schedule as a picture, stages down and unit time across: "stage 0 | F0 F1 .  B0".
std::string DrawTimeline(const StageOrders& orders);

/// One line a stage, as torch.distributed.pipelining writes it: "0F0,0F1,0B0".
std::string PrintOrders(const StageOrders& orders);

}  // namespace orrery::transforms

#endif  // ORRERY_TRANSFORMS_SCHEDULES_SCHEDULE_H_
