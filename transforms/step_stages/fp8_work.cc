#include "absl/strings/str_cat.h"
#include "support/status.h"
#include "transforms/step_work.h"
#include "transforms/training/fp8_mixed.h"

// Products in 8 or 4 bits.

namespace orrery::transforms {
namespace fp8_work_cc {
namespace {

// Costs of shardings, which are chosen by now, are those of 16 bits.
absl::Status Mix(StepWork& work) {
  ORRERY_ASSIGN_OR_RETURN(
      work.sharded, SharedFunction(work, "fp8", [&]() -> absl::StatusOr<ir::Function> {
        ir::Function mixed = work.last();
        ORRERY_RETURN_IF_ERROR(MixProducts(mixed, *work.plan.copies()).status());
        return mixed;
      }));
  work.batched.resize(work.sharded->outputs().size(), false);  // copies of weights are no results
  return absl::OkStatus();
}

}  // namespace
}  // namespace fp8_work_cc

extern const StepStage kFp8StepStage = {
    .name = "fp8",
    .summary = "products of linear layers read copies of 8 or 4 bits",
    .applies = [](const StepWork& work) { return work.plan.copies().has_value(); },
    .run = fp8_work_cc::Mix,
    .reads =
        [](const StepWork& work) {
          return absl::StrCat(ir::ToString(*work.plan.copies()), " on ", Places(work.mesh));
        },
};

}  // namespace orrery::transforms
