#ifndef ORRERY_TRANSFORMS_SCHEDULES_REGISTRY_H_
#define ORRERY_TRANSFORMS_SCHEDULES_REGISTRY_H_

#include <cstdint>
#include <string>

#include "transforms/schedules/schedule.h"

// What the files of the schedules share. A schedule's file includes this, so that its record has
// the linkage and the name that schedules.def says.

namespace orrery::transforms {

#define ORRERY_SCHEDULE(Name, file) extern const PipelineSchedule k##Name##Schedule;
#include "transforms/schedules/schedules.def"
#undef ORRERY_SCHEDULE

/// The step without its slot, as timelines and errors write it: "F0", "B12".
std::string StepName(const ScheduleStep& step);

/// `weight_versions` of every synchronous schedule: 1.
int32_t OneWeightVersion(const PipelineShape& shape, int32_t stage);

/// The orders of 1F1B, slots included: stage k runs min(p-1-k, m) forwards to warm up, then
/// alternates one forward and one backward, then runs the backwards that are left.
StageOrders OneForwardOneBackwardOrders(const PipelineShape& shape);

}  // namespace orrery::transforms

#endif  // ORRERY_TRANSFORMS_SCHEDULES_REGISTRY_H_
