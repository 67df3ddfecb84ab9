#ifndef ORRERY_TOOLS_VALIDATION_ROWS_ROW_RECOMPUTE_H_
#define ORRERY_TOOLS_VALIDATION_ROWS_ROW_RECOMPUTE_H_

#include "absl/status/status.h"
#include "tools/validation/rows/measured_steps.h"
#include "transforms/plan/parallel_plan.h"

// What a published row says of recomputation.

namespace orrery::tools {

/// Sets what forward keeps for backward, and what of it in the memory of the host: "full",
/// "selective", "selective: core_attn, mlp" by Megatron's modules, torchtitan's choice by op, and
/// MaxText's lists of what is kept (MeasuredStep::kept), which rematerialize all else of a layer. A
/// failed precondition with the reason where the row says something else.
absl::Status SetRecompute(const MeasuredStep& step, transforms::ParallelPlan& plan);

}  // namespace orrery::tools

#endif  // ORRERY_TOOLS_VALIDATION_ROWS_ROW_RECOMPUTE_H_
