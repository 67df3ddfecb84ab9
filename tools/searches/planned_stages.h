#ifndef ORRERY_TOOLS_SEARCHES_PLANNED_STAGES_H_
#define ORRERY_TOOLS_SEARCHES_PLANNED_STAGES_H_

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "search/settings/setting.h"
#include "tools/plan_flags.h"

// `simulate --plan`: a planner of stages, pipedream or alpa.

namespace orrery::tools {

/// What a planner says, and its plan, which is then played like any other.
struct PlannedStages {
  search::ParallelPlan plan;
  std::string text;
};

/// InvalidArgument for a planner that there is not, for flags of what planners say themselves, and
/// for those that mean nothing beside `given`, the plan that they make of `base`.
absl::Status CheckPlanner(const std::string& planner, const PlanFlags& flags,
                          const search::ParallelPlan& base, search::ParallelPlan given);

/// Its plan for all devices of the cluster, with what else `given` says.
absl::StatusOr<PlannedStages> PlanStages(const std::string& planner, const search::Setting& setting,
                                         const search::ParallelPlan& given);

}  // namespace orrery::tools

#endif  // ORRERY_TOOLS_SEARCHES_PLANNED_STAGES_H_
