#ifndef ORRERY_LOWERING_PLACEMENT_LATE_UPDATE_H_
#define ORRERY_LOWERING_PLACEMENT_LATE_UPDATE_H_

#include <cstdint>
#include <vector>

#include "lowering/placement/stage.h"
#include "transforms/stages/pipeline.h"

namespace orrery::lowering {

/// The earlier stages whose parts of gradients the update of `stage` waits for, ascending. In their
/// backwards they come after it: an update that follows the stage's own backward cannot have them.
std::vector<int32_t> AwaitedStages(const transforms::StageFunction& update, int32_t stage);

/// Takes out of `priced`, the template of `parts.update`, what waits for earlier stages, as a
/// template of its own; empty where nothing does. Memory that the one takes the other may give
/// back; what it waits for of the other has an origin that no value of the step has. Expects tasks
/// of one op, or of several that do not wait.
PricedTemplate TakeLate(const transforms::PipelineStage& parts, int32_t stage,
                        PricedTemplate& priced);

}  // namespace orrery::lowering

#endif  // ORRERY_LOWERING_PLACEMENT_LATE_UPDATE_H_
