#include "transforms/training/training_step.h"

#include <algorithm>

#include "absl/strings/str_format.h"
#include "ir/op_info.h"
#include "support/status.h"
#include "transforms/simplify/simplify.h"
#include "transforms/training/quantize_frozen.h"
#include "transforms/training/step_phases.h"

namespace orrery::transforms {
namespace training_step_cc {
namespace {

bool HasLoss(const ir::Function& function) {
  return std::any_of(function.outputs().begin(), function.outputs().end(),
                     [](const auto& output) { return output.role == ir::OutputRole::kLoss; });
}

// A step that trains nothing has half of the work and none of the communication: its time would be
// taken for an answer.
absl::Status CheckTrains(const ir::Function& function) {
  const bool trains = std::ranges::any_of(function.outputs(), [](const ir::Output& output) {
    return output.role == ir::OutputRole::kGradient || output.role == ir::OutputRole::kUpdated;
  });
  if (trains) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      function.name(),
      ": has no parameter to train; wanted one that the loss depends on; try `parameters` REGEX "
      "for "
      "inputs that are weights, a narrower `freeze`, or `loss` none for the forward alone"));
}

// Bytes are counted in 64 bits, and memory, traffic and flops are sums over the values: all of
// them together are held to a part of what fits.
absl::Status CheckSize(const ir::Function& function) {
  constexpr double kMostBytes = static_cast<double>(int64_t{1} << 56);
  double bytes = 0;
  for (int32_t v = 0; v < function.value_limit(); ++v) {
    const ir::TensorType& type = function.type(ir::ValueId(v));
    double size = static_cast<double>(ir::SizeOf(type.dtype));
    for (const int64_t dim : type.dims) size *= static_cast<double>(dim);
    bytes += size;
  }
  if (bytes <= kMostBytes) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrFormat("%s: its values have %.3g bytes together; wanted at most %.3g; try a smaller "
                      "model or batch",
                      function.name(), bytes, kMostBytes));
}

}  // namespace
}  // namespace training_step_cc

absl::Status MakeTrainingStep(ir::Function& function, const StepOptions& options) {
  const bool simplify = options.simplify && !HasBackward(function);
  ORRERY_RETURN_IF_ERROR(training_step_cc::CheckSize(function));
  ORRERY_RETURN_IF_ERROR(AttachLoss(function, options.loss).status());
  if (simplify) {
    ORRERY_RETURN_IF_ERROR(Simplify(function).status());
    FreezeTables(function);
  }
  ORRERY_RETURN_IF_ERROR(AddLora(function, options.lora).status());
  ORRERY_RETURN_IF_ERROR(QuantizeFrozen(function, options.frozen_dtype).status());
  if (options.loss.kind == "none" && !training_step_cc::HasLoss(function)) return absl::OkStatus();
  ORRERY_RETURN_IF_ERROR(BuildBackward(function).status());
  CastAgainInBackward(function);
  ORRERY_RETURN_IF_ERROR(training_step_cc::CheckTrains(function));
  return AppendOptimizer(function, options.optimizer).status();
}

}  // namespace orrery::transforms
