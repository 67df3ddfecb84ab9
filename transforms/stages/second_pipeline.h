#ifndef ORRERY_TRANSFORMS_STAGES_SECOND_PIPELINE_H_
#define ORRERY_TRANSFORMS_STAGES_SECOND_PIPELINE_H_

#include "transforms/stages/pipeline.h"

namespace orrery::transforms {

/// Appends to the p stages of `step` a copy of each, stage p+k of stage k, for the microbatches
/// that take the other direction (StagePlacement::kTwoWay). Stages k and p+k exchange their sums of
/// gradients at the beginning of the update, and make the same update. A parameter that several
/// stages have is summed up over those of both pipelines.
void AddSecondPipeline(PipelinedStep& step);

}  // namespace orrery::transforms

#endif  // ORRERY_TRANSFORMS_STAGES_SECOND_PIPELINE_H_
