#include "transforms/zero.h"

#include "absl/strings/str_cat.h"
#include "support/status.h"
#include "transforms/units.h"
#include "transforms/zero_part.h"
#include "transforms/zero_plan.h"

namespace orrery::transforms {

absl::Status CheckZero(const ZeroOptions& options) {
  if (options.stage < 0 || options.stage > ZeroOptions::kLastStage) {
    return absl::InvalidArgumentError(
        absl::StrCat("ZeRO's stage is ", options.stage, "; wanted 0, 1, 2 or 3"));
  }
  if (options.group < 0 || options.prefetch < 0) {
    return absl::InvalidArgumentError(absl::StrCat("ZeRO's group is ", options.group,
                                                   " and its prefetch depth ", options.prefetch,
                                                   "; wanted none below 0"));
  }
  if (options.group > 0 && options.stage == 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("a group of ", options.group,
                     " ranks, and stage 0 of ZeRO, which shares nothing out; wanted 1, 2 or 3"));
  }
  return absl::OkStatus();
}

absl::Status ApplyZero(const ZeroOptions& options, PipelinedStep& step) {
  ORRERY_RETURN_IF_ERROR(CheckZero(options));
  if (options.stage == 0) return absl::OkStatus();
  for (PipelineStage& stage : step.stages) {
    const ZeroPlan plan = PlanZero(options, stage);
    if (plan.parameters.empty()) continue;
    ORRERY_ASSIGN_OR_RETURN(stage.update, ShardUpdatePart(stage.update, plan));
    if (options.stage < 2) continue;
    ORRERY_ASSIGN_OR_RETURN(stage.backward, ShardMicrobatchPart(stage.backward, plan));
    OrderUnits(options.prefetch, stage.backward.function);
    if (!plan.gathers) continue;
    ORRERY_ASSIGN_OR_RETURN(stage.forward, ShardMicrobatchPart(stage.forward, plan));
    OrderUnits(options.prefetch, stage.forward.function);
  }
  return absl::OkStatus();
}

}  // namespace orrery::transforms
