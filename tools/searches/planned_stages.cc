#include "tools/searches/planned_stages.h"

#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "search/pipedream.h"
#include "search/stage_plans.h"
#include "support/status.h"
#include "tools/terminal/progress.h"

namespace orrery::tools {

absl::Status CheckPlanner(const std::string& planner, const PlanFlags& flags,
                          const search::ParallelPlan& base, search::ParallelPlan given) {
  if (planner != "pipedream" && planner != "alpa") {
    return absl::InvalidArgumentError(
        absl::StrCat("--plan '", planner, "': wanted pipedream or alpa"));
  }
  for (const absl::string_view flag : {"dp", "hp", "tp", "pp", "cp", "ep", "stage-meshes", "shares",
                                       "layers-per-stage", "split-at"}) {
    if (!flags.Has(flag)) continue;
    return absl::InvalidArgumentError(
        absl::StrCat("--plan ", planner, ": it says itself what --", flag, " is; wanted none"));
  }
  // Flags need not mean something for the degrees that it happens to choose, but for some.
  given.dp = given.hp = given.pp = 2;
  return CheckFlags(flags, given, base);
}

absl::StatusOr<PlannedStages> PlanStages(const std::string& planner, const search::Setting& setting,
                                         const search::ParallelPlan& given) {
  if (planner == "pipedream") {
    ORRERY_ASSIGN_OR_RETURN(const search::PipeDreamStages stages,
                            search::PlanPipeDream(setting, given.microbatches));
    return PlannedStages{.plan = search::PlanOfStages(setting, stages, given),
                         .text = search::PipeDreamText(stages)};
  }
  const Waiting waiting("planning");
  ORRERY_ASSIGN_OR_RETURN(std::vector<search::StagePlan> plans, search::AlpaPlans(setting, given));
  for (search::StagePlan& plan : search::UniformPlans(setting, given)) {
    plans.push_back(std::move(plan));
  }
  ORRERY_ASSIGN_OR_RETURN(const search::PlayedPlans played,
                          search::PlayPlans(setting, std::move(plans)));
  return PlannedStages{.plan = played.plans[played.best].plan,
                       .text = search::PlansText(setting, played)};
}

}  // namespace orrery::tools
