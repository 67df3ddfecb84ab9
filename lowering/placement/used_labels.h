#ifndef ORRERY_LOWERING_PLACEMENT_USED_LABELS_H_
#define ORRERY_LOWERING_PLACEMENT_USED_LABELS_H_

#include <vector>

#include "lowering/placement/stage.h"
#include "simulator/program/program.h"

namespace orrery::lowering {

/// Drops the labels of kernels that are in runs and stretches now: of a deep model hundreds for one
/// that is used. The first label of each kind of communication on each level stays, used or not, so
/// that reports list them in the same order. No task has been added to `program` yet.
void KeepUsedLabels(std::vector<Stage>& stages, simulator::Program& program);

}  // namespace orrery::lowering

#endif  // ORRERY_LOWERING_PLACEMENT_USED_LABELS_H_
