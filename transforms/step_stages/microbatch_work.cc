#include <utility>

#include "absl/strings/str_cat.h"
#include "support/status.h"
#include "transforms/step_work.h"
#include "transforms/training/microbatch.h"

// Microbatches that are parts of the batch.

namespace orrery::transforms {
namespace microbatch_work_cc {
namespace {

absl::Status CheckBatch(const StepWork& work) {
  if (work.sliced()) return absl::OkStatus();
  return AsFeasible(CheckMicrobatches(work.whole, work.plan.microbatches));
}

// What an importer knows of the op where the batch was lost says more than the op at which another
// batch comes to grief.
absl::StatusOr<ir::Function> PartOf(const StepWork& work) {
  absl::StatusOr<ir::Function> part = Microbatch(work.whole, work.plan.microbatches);
  const std::string& lost = work.context.batch_lost;
  if (part.ok() || lost.empty() || AsInfeasible(part.status()).has_value()) {
    return AsFeasible(std::move(part));
  }
  return Unsupported(absl::StrCat(lost, ": the batch is lost there, and ", work.plan.microbatches,
                                  " microbatches need each sample computed by itself; try one "
                                  "microbatch, or a model that reads sizes and positions of its "
                                  "inputs there, x.shape[0] and torch.arange"));
}

// Which outputs have the batch as their first dimension: those that are smaller in a microbatch.
absl::Status Microbatches(StepWork& work) {
  const int64_t microbatches = work.plan.microbatches;
  const ir::Function& whole = work.whole;
  if (microbatches > 1) {
    ORRERY_ASSIGN_OR_RETURN(work.one,
                            SharedFunction(work, "microbatch", [&] { return PartOf(work); }));
  }
  const ir::Function& part = work.part();
  for (size_t i = 0; i < whole.outputs().size(); ++i) {
    const ir::ValueId output = whole.outputs()[i].value;
    const ir::Dims& wanted = whole.type(output).dims;
    ir::Dims dims = part.type(part.outputs()[i].value).dims;
    work.batched.push_back(!(wanted == dims));
    if (!work.batched.back()) continue;
    if (!dims.empty()) dims[0] *= microbatches;
    if (wanted == dims) continue;
    return Unsupported(absl::StrCat("output ", ir::PrintValue(whole, output),
                                    " has the batch in another dimension than its first; wanted "
                                    "one microbatch"));
  }
  return absl::OkStatus();
}

}  // namespace
}  // namespace microbatch_work_cc

extern const StepStage kMicrobatchStepStage = {
    .name = "microbatch",
    .summary = "the step of one microbatch, a part of the batch",
    .applies = [](const StepWork& work) { return !work.sliced(); },
    .divides = microbatch_work_cc::CheckBatch,
    .run = microbatch_work_cc::Microbatches,
    .reads = [](const StepWork& work) { return absl::StrCat(work.plan.microbatches); },
};

}  // namespace orrery::transforms
