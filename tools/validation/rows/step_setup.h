#ifndef ORRERY_TOOLS_VALIDATION_ROWS_STEP_SETUP_H_
#define ORRERY_TOOLS_VALIDATION_ROWS_STEP_SETUP_H_

#include "absl/status/statusor.h"
#include "tools/flags.h"
#include "tools/validation/rows/measured_steps.h"
#include "tools/validation/rows/mixture_recipe.h"
#include "transforms/plan/parallel_plan.h"

// What a published row asks of the simulator, as flags of `simulate`.

namespace orrery::tools {

struct StepSetup {
  ModelFlags flags;
  transforms::ParallelPlan plan;
  std::string stack;    // the software that ran it: "megatron", "deepspeed", "torchtitan"
  bool graphs = false;  // forward and backward as captured graphs
  MixtureRecipe mixture;
  bool attention_in_8_bits = false;  // cuDNN\'s of fp8
};

/// The model, cluster, software and layout of a row. A failed precondition with the reason where
/// the row does not say enough, or something that has no counterpart here.
absl::StatusOr<StepSetup> SetupOf(const MeasuredStep& step);

}  // namespace orrery::tools

#endif  // ORRERY_TOOLS_VALIDATION_ROWS_STEP_SETUP_H_
