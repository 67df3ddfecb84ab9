#ifndef ORRERY_TRANSFORMS_STAGES_SCATTERED_SENDS_H_
#define ORRERY_TRANSFORMS_STAGES_SCATTERED_SENDS_H_

#include "ir/function.h"
#include "transforms/stages/stage_plan.h"

namespace orrery::transforms {

/// The step in which values that all ranks of hp have whole go to another stage in parts, one a
/// rank, and are gathered there (Narayanan et al. 2021, section 4.1): AllSlice where they are made,
/// AllGather before the first op of a stage that reads them. `plan`, of `function`, tells of those
/// ops, too; all others keep their numbers. Values of which no dimension divides stay as they are,
/// and so does all that update reads.
ir::Function ScatterSends(const ir::Function& function, StagePlan& plan);

}  // namespace orrery::transforms

#endif  // ORRERY_TRANSFORMS_STAGES_SCATTERED_SENDS_H_
