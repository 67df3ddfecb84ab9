#include "absl/strings/str_cat.h"
#include "ir/verifier.h"
#include "support/status.h"
#include "transforms/step_work.h"

// Looks at the functions of pipeline stages before more is done to them.

namespace orrery::transforms {
namespace verify_work_cc {
namespace {

absl::Status VerifyParts(StepWork& work) {
  for (const ir::Function& function : work.Functions()) {
    ORRERY_RETURN_IF_ERROR(Annotate(ir::Verify(function), "after the cut"));
  }
  return absl::OkStatus();
}

}  // namespace
}  // namespace verify_work_cc

extern const StepStage kVerifyStepStage = {
    .name = "verify",
    .summary = "functions of pipeline stages are what a function has to be",
    .applies = [](const StepWork& work) { return work.step.has_value() && work.plan.pp > 1; },
    .run = verify_work_cc::VerifyParts,
};

}  // namespace orrery::transforms
