#include "tools/one_plan.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "support/file.h"
#include "support/status.h"
#include "tools/terminal/progress.h"
#include "transforms/schedules/text.h"

namespace orrery::tools {

absl::Status ReadOrders(const search::ParallelPlan& plan, search::Setting& setting) {
  if (plan.schedule_file.empty()) return absl::OkStatus();
  ORRERY_ASSIGN_OR_RETURN(const std::string text, ReadFile(plan.schedule_file));
  ORRERY_ASSIGN_OR_RETURN(setting.orders, transforms::ParseOrders(text, plan.schedule_file));
  return absl::OkStatus();
}

absl::StatusOr<search::Run> PlayOne(const search::Setting& setting,
                                    const search::ParallelPlan& plan) {
  absl::StatusOr<search::Run> run = [&] {
    const Waiting waiting("simulating");
    return search::Play(setting, plan);
  }();
  if (run.ok()) return run;
  return AsPrecondition(run.status());
}

absl::Status AsPrecondition(const absl::Status& status) {
  const auto infeasible = AsInfeasible(status);
  if (!infeasible.has_value()) return status;
  return absl::FailedPreconditionError(
      absl::StrCat("infeasible (", ToString(infeasible->reason), "): ", infeasible->detail));
}

}  // namespace orrery::tools
