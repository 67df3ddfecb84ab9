#include "transforms/training_step.h"

#include <algorithm>

#include "support/status.h"

namespace orrery::transforms {
namespace {

bool HasLoss(const ir::Function& function) {
  return std::any_of(function.outputs().begin(), function.outputs().end(), [](const auto& output) {
    return output.role == ir::OutputRole::kLoss;
  });
}

}  // namespace

absl::Status MakeTrainingStep(ir::Function& function, const StepOptions& options) {
  ORRERY_RETURN_IF_ERROR(AttachLoss(function, options.loss).status());
  if (options.loss.kind == "none" && !HasLoss(function)) return absl::OkStatus();
  ORRERY_RETURN_IF_ERROR(BuildBackward(function).status());
  return AppendOptimizer(function, options.optimizer).status();
}

}  // namespace orrery::transforms
