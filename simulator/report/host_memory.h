#ifndef ORRERY_SIMULATOR_REPORT_HOST_MEMORY_H_
#define ORRERY_SIMULATOR_REPORT_HOST_MEMORY_H_

#include "simulator/program/program.h"
#include "simulator/program/trace.h"
#include "support/id_table.h"
#include "support/units.h"

namespace orrery::simulator {

/// The most that each rank holds in the memory of its host at a time (MemoryKind::kHost), residents
/// included: what is offloaded. A copy to the host takes its room when it starts; a copy from there
/// gives it back when it has finished.
IdTable<RankClassId, Bytes> PeakHostMemory(const Program& program, const Trace& trace);

}  // namespace orrery::simulator

#endif  // ORRERY_SIMULATOR_REPORT_HOST_MEMORY_H_
