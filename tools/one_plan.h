#ifndef ORRERY_TOOLS_ONE_PLAN_H_
#define ORRERY_TOOLS_ONE_PLAN_H_

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "search/evaluate.h"

// What programs do that play one configuration.

namespace orrery::tools {

/// Gives the setting the orders of the plan's --schedule-file, where it has one.
absl::Status ReadOrders(const search::ParallelPlan& plan, search::Setting& setting);

/// What cannot be done as a FailedPrecondition: "infeasible (divisibility): …".
absl::Status AsPrecondition(const absl::Status& status);

/// Plays it. What cannot be done is a FailedPrecondition: "infeasible (divisibility): …".
absl::StatusOr<search::Run> PlayOne(const search::Setting& setting,
                                    const search::ParallelPlan& plan);

}  // namespace orrery::tools

#endif  // ORRERY_TOOLS_ONE_PLAN_H_
