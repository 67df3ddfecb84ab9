#ifndef ORRERY_LOWERING_PLACEMENT_EARLY_GATHERS_H_
#define ORRERY_LOWERING_PLACEMENT_EARLY_GATHERS_H_

#include "lowering/blocks/task_template.h"
#include "lowering/placement/stage.h"
#include "transforms/stages/pipeline.h"

namespace orrery::lowering {

/// Takes from the update of a stage what gathers updated parameters over data-parallel ranks
/// (ZeRO's stages 1 and 2), as a template of its own that waits for nothing, in the order in which
/// `forward` needs them: of software that gathers them while the forward of the next step runs
/// (Megatron's overlap_param_gather). In a step that follows another, the gathers of the step
/// before are under way at its start, and what reads a parameter first waits for it: the outputs of
/// the template are the parameters. 8-bit copies of what is gathered stay in the update, which
/// takes as long; so does memory, so that the peak is that of a step that gathers at its end.
/// `part` is what `update` was made from.
PricedTemplate TakeGathers(const transforms::StageFunction& part, const TaskTemplate& forward,
                           PricedTemplate& update);

}  // namespace orrery::lowering

#endif  // ORRERY_LOWERING_PLACEMENT_EARLY_GATHERS_H_
