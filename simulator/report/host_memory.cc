#include "simulator/report/host_memory.h"

#include <algorithm>
#include <vector>

namespace orrery::simulator {
namespace host_memory_cc {
namespace {

struct Change {
  Time time;
  RankClassId rank;
  Bytes bytes;
};

}  // namespace
}  // namespace host_memory_cc

IdTable<RankClassId, Bytes> PeakHostMemory(const Program& program, const Trace& trace) {
  IdTable<RankClassId, Bytes> now, peaks;
  for (int32_t rank = 0; rank < program.rank_count(); ++rank) {
    now.push_back(program.resident(RankClassId(rank), MemoryKind::kHost));
  }
  peaks = now;
  std::vector<host_memory_cc::Change> changes;
  for (const MemoryEvent& event : program.memory_events()) {
    if (event.kind != MemoryKind::kHost) continue;
    const Time time = event.at_start() ? trace.start_of(event.task) : trace.finish_of(event.task);
    changes.push_back({.time = time, .rank = event.rank, .bytes = Bytes(event.bytes)});
  }
  std::ranges::stable_sort(changes, {}, &host_memory_cc::Change::time);
  for (const host_memory_cc::Change& change : changes) {
    now[change.rank] += change.bytes;
    peaks[change.rank] = std::max(peaks[change.rank], now[change.rank]);
  }
  return peaks;
}

}  // namespace orrery::simulator
