#include <string>

#include "transforms/memory/muon_update.h"
#include "transforms/step_work.h"

// Optimizers that need whole matrices gather them.

namespace orrery::transforms {
namespace muon_work_cc {
namespace {

absl::Status CheckMuon(const StepWork& work) {
  if (!work.plan.offload.optimizer || !HasMuon(work.whole)) return absl::OkStatus();
  return Unsupported(
      "Muon on the host, which has no matrix units for its products; wanted `offload` none or "
      "activations, or another optimizer");
}

}  // namespace
}  // namespace muon_work_cc

extern const StepStage kOrthogonalizeStepStage = {
    .name = "orthogonalize",
    .summary = "updates by Muon gather momentum, make it orthogonal, and take their part",
    .applies = [](const StepWork& work) { return HasMuon(work.whole); },
    .check = muon_work_cc::CheckMuon,
    .run = [](StepWork& work) { return ExpandMuon(*work.step); },
    .reads = [](const StepWork&) { return std::string(); },
};

}  // namespace orrery::transforms
