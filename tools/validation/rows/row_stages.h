#ifndef ORRERY_TOOLS_VALIDATION_ROWS_ROW_STAGES_H_
#define ORRERY_TOOLS_VALIDATION_ROWS_ROW_STAGES_H_

#include <cstdint>

#include "absl/strings/string_view.h"
#include "tools/validation/rows/measured_steps.h"
#include "transforms/plan/parallel_plan.h"

// How the layers of a published row lie in its pipeline.

namespace orrery::tools {

/// Sources that print it give the first and the last stage a layer less, for embedding and loss;
/// others who need to do so do not divide evenly otherwise. DeepSpeed fills one stage after the
/// other.
void SetStages(const MeasuredStep& step, absl::string_view stack, int64_t stages,
               transforms::ParallelPlan& plan);

/// As many chunks as there may be with as many layers each, or a layer less in the first and the
/// last.
int64_t MostChunks(const MeasuredStep& step, int64_t pp);

}  // namespace orrery::tools

#endif  // ORRERY_TOOLS_VALIDATION_ROWS_ROW_STAGES_H_
