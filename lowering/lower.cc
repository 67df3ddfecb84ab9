#include "lowering/lower.h"

#include "lowering/prepared_step.h"
#include "support/status.h"

namespace orrery::lowering {

bool IsOf(const simulator::TaskLabel& label, const transforms::ScheduleStep& step) {
  const bool forward = step.kind == transforms::StepKind::kForward;
  return label.stage == step.stage &&
         label.phase == (forward ? simulator::Phase::kForward : simulator::Phase::kBackward);
}

absl::StatusOr<simulator::Program> Lower(const LoweringInput& input) {
  PreparedStep prepared(input);
  ORRERY_RETURN_IF_ERROR(prepared.Prepare());
  return prepared.Instantiate({.rounds = input.rounds,
                               .first_microbatches = input.first_microbatches,
                               .lowered = input.lowered});
}

}  // namespace orrery::lowering
