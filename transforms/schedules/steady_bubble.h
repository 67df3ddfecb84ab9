#ifndef ORRERY_TRANSFORMS_SCHEDULES_STEADY_BUBBLE_H_
#define ORRERY_TRANSFORMS_SCHEDULES_STEADY_BUBBLE_H_

#include <cstdint>
#include <optional>

#include "transforms/schedules/schedule.h"

namespace orrery::transforms {

/// The most steps of a run that SteadyBubble plays: some two seconds in all.
inline constexpr int64_t kMostSteadySteps = 1'000'000;

/// Of a schedule that never drains: the idle share of the ranks' time once the pipeline is full,
/// with the durations of `shape`, whose number of microbatches does not matter. It is found as a
/// step is measured: two runs differ by what a full pipeline does, filling and draining are in
/// both; runs get longer until one more period takes what the one before took. None where that
/// would be over kMostSteadySteps. Requires a shape that `CheckShape` accepts.
std::optional<double> SteadyBubble(const PipelineSchedule& schedule, const PipelineShape& shape);

}  // namespace orrery::transforms

#endif  // ORRERY_TRANSFORMS_SCHEDULES_STEADY_BUBBLE_H_
