#ifndef ORRERY_SIMULATOR_PROGRAM_FRAGMENTATION_H_
#define ORRERY_SIMULATOR_PROGRAM_FRAGMENTATION_H_

#include <cstdint>

#include "simulator/program/program.h"
#include "support/units.h"

namespace orrery::simulator {

/// Bytes that an allocator loses where a rank holds `use`: the part `fragmentation` of what that is
/// more than the residents of kinds `buffers` and `other`.
inline Bytes LostOf(const Program& program, RankClassId rank, double fragmentation, Bytes use) {
  const Bytes tensors = use - program.resident(rank, MemoryKind::kBuffers) -
                        program.resident(rank, MemoryKind::kOther);
  return Bytes(static_cast<int64_t>(fragmentation * static_cast<double>(tensors.count())));
}

}  // namespace orrery::simulator

#endif  // ORRERY_SIMULATOR_PROGRAM_FRAGMENTATION_H_
