#include "absl/strings/str_cat.h"
#include "transforms/memory/offload.h"
#include "transforms/memory/recompute.h"
#include "transforms/step_work.h"

// What saves memory on the device: recomputation, and copies to the host.

namespace orrery::transforms {
namespace memory_work_cc {
namespace {

KeepRule KeepRuleOf(const StepWork& work) {
  return {.policy = work.plan.recompute,
          .gathers = GathersAgain(work),
          .fuses = work.context.fuses_pointwise,
          .whole = work.context.recomputes_whole};
}

absl::Status OffloadTheActivations(StepWork& work) {
  return OffloadActivations({.policy = work.plan.offload, .prefetch = work.plan.offload_prefetch},
                            *work.step);
}

absl::Status CheckOptimizer(const StepWork& work) {
  if (!work.plan.offload.optimizer || !work.context.updates_each_microbatch) {
    return absl::OkStatus();
  }
  return Unsupported(
      "the optimizer on the host, with a schedule that keeps several versions of the weights; "
      "wanted a synchronous one, such as 1f1b");
}

}  // namespace
}  // namespace memory_work_cc

extern const StepStage kRecomputeStepStage = {
    .name = "recompute",
    .summary = "backward rematerializes what forward does not keep",
    .applies =
        [](const StepWork& work) { return Rematerializes(memory_work_cc::KeepRuleOf(work)); },
    .run = [](StepWork& work) { return Recompute(*work.step, memory_work_cc::KeepRuleOf(work)); },
    .reads =
        [](const StepWork& work) {
          const KeepRule rule = memory_work_cc::KeepRuleOf(work);
          return absl::StrCat(KeyOf(ToString(rule.policy)), rule.gathers ? " gathers" : "",
                              rule.fuses ? " fuses" : "", rule.whole ? " whole" : "");
        },
};

extern const StepStage kOffloadActivationsStepStage = {
    .name = "offload-activations",
    .summary = "copies of activations to the host, and back",
    .applies = [](const StepWork& work) { return work.plan.offload.activations; },
    .run = memory_work_cc::OffloadTheActivations,
    .reads =
        [](const StepWork& work) {
          return absl::StrCat(KeyOf(ToString(work.plan.offload)), " ", work.plan.offload_prefetch);
        },
};

extern const StepStage kOffloadOptimizerStepStage = {
    .name = "offload-optimizer",
    .summary = "the update runs on the host",
    .applies = [](const StepWork& work) { return work.plan.offload.optimizer; },
    .check = memory_work_cc::CheckOptimizer,
    .run = [](StepWork& work) { return OffloadOptimizer(work.plan.offload, *work.step); },
    .reads = [](const StepWork& work) { return KeyOf(ToString(work.plan.offload)); },
};

}  // namespace orrery::transforms
