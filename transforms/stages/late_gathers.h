#ifndef ORRERY_TRANSFORMS_STAGES_LATE_GATHERS_H_
#define ORRERY_TRANSFORMS_STAGES_LATE_GATHERS_H_

#include "ir/function.h"
#include "transforms/stages/stage_plan.h"

namespace orrery::transforms {

/// Gathers of backward go to the last stage that reads what they make, where that is behind theirs:
/// the boundary then is crossed by the part of each rank, as in forward (Korthikanti et al. 2022,
/// section 4.2.3).
void GatherWhereRead(const ir::Function& function, StagePlan& plan);

}  // namespace orrery::transforms

#endif  // ORRERY_TRANSFORMS_STAGES_LATE_GATHERS_H_
