#ifndef ORRERY_TRANSFORMS_SCHEDULES_TESTING_SLOTS_H_
#define ORRERY_TRANSFORMS_SCHEDULES_TESTING_SLOTS_H_

#include <cstdint>

#include "absl/status/status.h"
#include "transforms/schedules/schedule.h"

// What slots of steps have to be, for tests of what gives them.

namespace orrery::transforms {

/// First free slot after all steps: the makespan where every step lasts one unit.
int32_t UnitMakespan(const RankOrders& orders);

/// As CheckOrders; and that slots ascend and no step is in a slot before one that it waits for.
absl::Status VerifyOrders(const RankOrders& orders, StagePlacement placement,
                          const PipelineShape& shape);

}  // namespace orrery::transforms

#endif  // ORRERY_TRANSFORMS_SCHEDULES_TESTING_SLOTS_H_
