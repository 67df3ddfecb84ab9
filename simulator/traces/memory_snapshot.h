#ifndef ORRERY_SIMULATOR_TRACES_MEMORY_SNAPSHOT_H_
#define ORRERY_SIMULATOR_TRACES_MEMORY_SNAPSHOT_H_

#include <ostream>

#include "simulator/program/program.h"
#include "simulator/program/trace.h"

namespace orrery::simulator {

/// Writes what the ranks of a class hold when, as torch.cuda.memory._snapshot() returns it,
/// pickled: what pytorch.org/memory_viz draws. Each piece of memory that a task takes is an
/// allocation, whose only frame says which task and what it holds; what is resident is taken at the
/// beginning. What is given back ends the newest allocation of that kind and size; where there is
/// none, larger or several ones end, and what is left of them is taken anew. Addresses are made up:
/// the lowest place that is free.
void WriteMemorySnapshot(const Program& program, const Trace& trace, RankClassId rank,
                         std::ostream& out);

}  // namespace orrery::simulator

#endif  // ORRERY_SIMULATOR_TRACES_MEMORY_SNAPSHOT_H_
