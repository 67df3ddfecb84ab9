#ifndef ORRERY_LOWERING_BLOCKS_STRAGGLERS_H_
#define ORRERY_LOWERING_BLOCKS_STRAGGLERS_H_

#include <span>

#include "ir/mesh.h"
#include "lowering/blocks/task_template.h"

namespace orrery::lowering {

/// Ranks that do the same do not take the same: clocks, temperatures and memory differ, and all
/// wait for the slowest once a step. Makes kernels longer by `straggling` for each doubling of the
/// ranks along all axes but hp and pp, as measured steps grow (reference: CostModel::Straggling).
void WaitForTheSlowest(const ir::Mesh& mesh, double straggling, std::span<TemplateTask> tasks);

}  // namespace orrery::lowering

#endif  // ORRERY_LOWERING_BLOCKS_STRAGGLERS_H_
