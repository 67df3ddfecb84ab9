#include "transforms/training_step.h"

#include <algorithm>

#include "support/status.h"
#include "transforms/simplify.h"

namespace orrery::transforms {
namespace {

// Whether the function holds a backward pass, or at least the beginning of one.
bool HasBackward(const ir::Function& function) {
  return std::any_of(function.order().begin(), function.order().end(),
                     [&](ir::OpId op) { return function.info(op).seeds_backward; });
}

bool HasLoss(const ir::Function& function) {
  return std::any_of(function.outputs().begin(), function.outputs().end(),
                     [](const auto& output) { return output.role == ir::OutputRole::kLoss; });
}

}  // namespace

absl::Status MakeTrainingStep(ir::Function& function, const StepOptions& options) {
  const bool simplify = options.simplify && !HasBackward(function);
  ORRERY_RETURN_IF_ERROR(AttachLoss(function, options.loss).status());
  if (simplify) ORRERY_RETURN_IF_ERROR(Simplify(function).status());
  if (options.loss.kind == "none" && !HasLoss(function)) return absl::OkStatus();
  ORRERY_RETURN_IF_ERROR(BuildBackward(function).status());
  return AppendOptimizer(function, options.optimizer).status();
}

}  // namespace orrery::transforms
