#ifndef ORRERY_SIMULATOR_REPORT_MEMORY_H_
#define ORRERY_SIMULATOR_REPORT_MEMORY_H_

#include <array>
#include <span>
#include <vector>

#include "absl/functional/function_ref.h"
#include "simulator/program/program.h"
#include "simulator/program/trace.h"
#include "support/id_table.h"
#include "support/units.h"

// Memory is liveness over the schedule: what a rank holds grows when a task starts and shrinks when
// one has finished. At the same moment, events keep the order in which the program has them: what
// one task frees is there for the next one on its stream, and a task of no duration takes before it
// gives back.

namespace orrery::simulator {

/// What a rank holds at one moment, by `MemoryKind`.
struct MemoryUse {
  Time time;
  Bytes total;
  std::array<Bytes, kMemoryKindCount> by_kind;
  TaskId task = {};  // whose start or finish led to it; invalid: none yet

  /// What it holds of one kind, other than the host's.
  Bytes of(MemoryKind kind) const { return by_kind[static_cast<size_t>(kind)]; }
  friend bool operator==(const MemoryUse&, const MemoryUse&) = default;
};

/// The most that each rank holds at a time, residents included, and the first moment of it.
IdTable<RankClassId, MemoryUse> PeakMemory(const Program& program, const Trace& trace);

/// What each rank holds after each of its events, in time order; the first entry is what is
/// resident at 0.
IdTable<RankClassId, std::vector<MemoryUse>> MemoryTimeline(const Program& program,
                                                            const Trace& trace);

/// The same of `ranks`, one after another, and of each one use after another, for who needs no more
/// than one at a time.
void VisitMemory(const Program& program, const Trace& trace, std::span<const RankClassId> ranks,
                 absl::FunctionRef<void(RankClassId rank, const MemoryUse& use)> visit);

/// At most `points` (>= 2) of a rank's `timeline`, each of another moment: of so many equally long
/// parts of it the use that is largest, so that the peak is there, and the last one.
std::vector<MemoryUse> ThinTimeline(std::span<const MemoryUse> timeline, size_t points);

}  // namespace orrery::simulator

#endif  // ORRERY_SIMULATOR_REPORT_MEMORY_H_
