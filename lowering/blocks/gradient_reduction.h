#ifndef ORRERY_LOWERING_BLOCKS_GRADIENT_REDUCTION_H_
#define ORRERY_LOWERING_BLOCKS_GRADIENT_REDUCTION_H_

#include "lowering/blocks/stack_kernels.h"
#include "lowering/blocks/task_template.h"

namespace orrery::lowering {

/// What software decides of a collective of an update that reduces gradients: how many bytes an
/// element it moves (ExtraTraffic::reduction), and whether it waits for the last backward
/// (StackKernels::reduces_after_backward). Others stay as they are.
void ReduceAsSoftwareDoes(const StackKernels& kernels, TemplateTask& task);

}  // namespace orrery::lowering

#endif  // ORRERY_LOWERING_BLOCKS_GRADIENT_REDUCTION_H_
