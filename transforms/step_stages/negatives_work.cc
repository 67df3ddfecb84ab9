#include <algorithm>

#include "absl/strings/str_cat.h"
#include "ir/batch.h"
#include "support/status.h"
#include "transforms/step_work.h"
#include "transforms/training/own_negatives.h"

// Contrastive losses within a rank.

namespace orrery::transforms {
namespace negatives_work_cc {
namespace {

absl::Status Check(const StepWork& work) {
  if (work.plan.negatives == ContrastiveNegatives::kGathered || !work.sliced()) {
    return absl::OkStatus();
  }
  return Unsupported("negatives local beside slices; wanted microbatches of samples");
}

// A model whose samples never meet has nothing to choose; where nobody knows whether they do, there
// is no choice.
absl::Status Run(StepWork& work) {
  const ir::Function& part = work.part();
  const IdTable<ir::ValueId, int8_t> dims = ir::BatchDims(part);
  const bool known = std::ranges::any_of(
      part.inputs(), [&](const ir::Input& input) { return dims[input.value] >= 0; });
  if (!known && ir::BatchOf(part) > 0) {
    const std::string& lost = work.context.batch_lost;
    return Unsupported(absl::StrCat(lost, lost.empty() ? "" : ": the batch is lost there; ",
                                    "samples cannot be told apart, as negatives local wants; try "
                                    "negatives gathered"));
  }
  if (!SamplesMeet(part)) return absl::OkStatus();
  ORRERY_ASSIGN_OR_RETURN(work.one, SharedFunction(work, "negatives", [&] {
                            return AsFeasible(OwnNegatives(part, work.plan.dp * work.plan.ep));
                          }));
  return absl::OkStatus();
}

}  // namespace
}  // namespace negatives_work_cc

extern const StepStage kNegativesStepStage = {
    .name = "negatives",
    .summary = "samples of a contrastive loss meet those of their rank only",
    .applies =
        [](const StepWork& work) {
          return work.plan.negatives == ContrastiveNegatives::kLocal &&
                 work.plan.dp * work.plan.ep > 1;
        },
    .check = negatives_work_cc::Check,
    .run = negatives_work_cc::Run,
    .reads = [](const StepWork& work) { return absl::StrCat(work.plan.dp * work.plan.ep); },
};

}  // namespace orrery::transforms
