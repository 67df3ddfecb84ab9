#ifndef ORRERY_TRANSFORMS_SCHEDULES_REGISTRY_H_
#define ORRERY_TRANSFORMS_SCHEDULES_REGISTRY_H_

#include <cstdint>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "transforms/schedules/orders.h"
#include "transforms/schedules/schedule.h"

// What the files of the schedules share. A schedule's file includes this, so that its record has
// the linkage and the name that schedules.def says.

namespace orrery::transforms {

#define ORRERY_SCHEDULE(Name, file) extern const PipelineSchedule k##Name##Schedule;
#include "transforms/schedules/schedules.def"
#undef ORRERY_SCHEDULE

/// `weight_versions` of every synchronous schedule: 1.
int32_t OneWeightVersion(const PipelineShape& shape, int32_t stage);

/// What `check` returns for a shape without orders: an Infeasible that tells the shape and what is
/// wanted instead, as in "as many microbatches as twice the ranks".
absl::Status NoSuchOrders(const PipelineShape& shape, absl::string_view wanted);

/// The orders of 1F1B, slots included: rank k runs min(p-1-k, m) forwards to warm up, then
/// alternates one forward and one backward, then runs the backwards that are left.
RankOrders OneForwardOneBackwardOrders(const PipelineShape& shape);

}  // namespace orrery::transforms

#endif  // ORRERY_TRANSFORMS_SCHEDULES_REGISTRY_H_
