#include "transforms/memory/zero.h"

#include <vector>

#include "absl/strings/str_cat.h"
#include "support/status.h"
#include "transforms/memory/units.h"
#include "transforms/memory/zero_part.h"
#include "transforms/memory/zero_plan.h"

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

HeldParts PartsHeld(const ZeroOptions& options, int64_t ranks) {
  const auto part = [&](int64_t stage) {
    return options.stage >= stage ? 1 / static_cast<double>(ranks) : 1;
  };
  return {.parameters = part(3), .gradients = part(2), .states = part(1)};
}

absl::Status ApplyZero(const ZeroOptions& options, PipelinedStep& step) {
  ORRERY_RETURN_IF_ERROR(CheckZero(options));
  if (options.stage == 0) return absl::OkStatus();
  const std::vector<ZeroPlan> plans = PlanZero(options, step);
  for (size_t s = 0; s < plans.size(); ++s) {
    PipelineStage& stage = step.stages[s];
    if (plans[s].parameters.empty()) continue;
    ORRERY_ASSIGN_OR_RETURN(stage.update, ShardUpdatePart(stage.update, plans[s]));
    if (options.stage < 2) continue;
    for (StageFunction* part : {&stage.forward, &stage.backward, &stage.weights}) {
      if (part->function.order().empty()) continue;
      if (part == &stage.forward && !plans[s].gathers) continue;  // it makes no gradients
      ORRERY_ASSIGN_OR_RETURN(*part, ShardMicrobatchPart(*part, plans[s]));
      OrderUnits(options.prefetch, part->function);
    }
  }
  return absl::OkStatus();
}

}  // namespace orrery::transforms
