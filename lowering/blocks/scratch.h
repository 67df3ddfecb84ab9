#ifndef ORRERY_LOWERING_BLOCKS_SCRATCH_H_
#define ORRERY_LOWERING_BLOCKS_SCRATCH_H_

#include "ir/function.h"
#include "lowering/blocks/stack_memory.h"
#include "support/id_table.h"

namespace orrery::lowering {

/// Bytes that a rank takes while `op` runs, beside the operands and results: of losses and updates
/// what `memory` says, of everything else 0. `local` are the types of a rank's own parts.
double ScratchBytes(ir::OpId op, const ir::Function& function,
                    const IdTable<ir::TypeId, ir::TensorType>& local, const StackMemory& memory);

}  // namespace orrery::lowering

#endif  // ORRERY_LOWERING_BLOCKS_SCRATCH_H_
