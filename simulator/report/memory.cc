#include "simulator/report/memory.h"

#include <algorithm>
#include <numeric>
#include <span>

#include "support/check.h"

namespace orrery::simulator {
namespace memory_cc {
namespace {

// An event with the moment at which it happens.
struct TimedEvent {
  Time time;
  Bytes bytes;
  TaskId task;
  MemoryKind kind;
};

Time TimeOf(const MemoryEvent& event, const Trace& trace) {
  return event.at_start() ? trace.start_of(event.task) : trace.finish_of(event.task);
}

MemoryUse Resident(const Program& program, RankClassId rank) {
  MemoryUse use;
  for (int kind = 0; kind < kMemoryKindCount; ++kind) {
    const Bytes bytes = program.resident(rank, static_cast<MemoryKind>(kind));
    use.by_kind[static_cast<size_t>(kind)] = bytes;
    use.total += bytes;
  }
  return use;
}

void Apply(const TimedEvent& event, MemoryUse& use) {
  use.time = event.time;
  use.task = event.task;
  if (event.kind == MemoryKind::kHost) return;
  use.total += event.bytes;
  use.by_kind[static_cast<size_t>(event.kind)] += event.bytes;
}

// About as many as the events of a rank have: each of its streams is in order, mostly.
constexpr int kMostRuns = kStreamKindCount;

// Stable, and quick where `events` are a few runs that are each in order, interleaved, as those of
// a rank's streams are: takes out one run, sorts the rest in the same way, and merges them. What is
// left out of a run is earlier than what the run had before it, so that where both are of one
// moment the run's comes first.
void SortRuns(std::span<TimedEvent> events, int most_runs = kMostRuns) {
  const auto earlier = [](const TimedEvent& a, const TimedEvent& b) { return a.time < b.time; };
  if (std::is_sorted(events.begin(), events.end(), earlier)) return;
  if (most_runs == 0) return std::stable_sort(events.begin(), events.end(), earlier);
  std::vector<TimedEvent> rest;
  rest.reserve(events.size());
  auto run_end = events.begin();
  for (const TimedEvent& event : events) {
    if (run_end != events.begin() && earlier(event, *(run_end - 1))) {
      rest.push_back(event);
    } else {
      *run_end++ = event;
    }
  }
  SortRuns(rest, most_runs - 1);
  // From the end, so that nothing is overwritten before it has been read.
  auto to = events.end();
  for (auto late = rest.end(); late != rest.begin();) {
    if (run_end != events.begin() && earlier(*(late - 1), *(run_end - 1))) {
      *--to = *--run_end;
    } else {
      *--to = *--late;
    }
  }
}

// The events of all ranks, one rank after the other, each in time order. The order of the program
// decides ties: both sorts are stable.
struct EventRows {
  std::vector<uint32_t> begin;  // rank r goes from begin[r] to begin[r + 1]
  std::vector<TimedEvent> events;

  std::span<const TimedEvent> of(int32_t rank) const {
    const size_t row = static_cast<size_t>(rank);
    return std::span(events).subspan(begin[row], begin[row + 1] - begin[row]);
  }
};

EventRows SortByRankAndTime(const Program& program, const Trace& trace) {
  EventRows rows{.begin = std::vector<uint32_t>(static_cast<size_t>(program.rank_count()) + 2),
                 .events = std::vector<TimedEvent>(program.memory_events().size())};
  const auto row_of = [](const MemoryEvent& event) {
    return static_cast<size_t>(event.rank.index());
  };
  // Counted two places on: filling row r moves begin[r + 1] from where it starts to where it ends.
  for (const MemoryEvent& event : program.memory_events()) ++rows.begin[row_of(event) + 2];
  std::partial_sum(rows.begin.begin(), rows.begin.end(), rows.begin.begin());
  for (const MemoryEvent& event : program.memory_events()) {
    rows.events[rows.begin[row_of(event) + 1]++] = {TimeOf(event, trace), Bytes(event.bytes),
                                                    event.task, event.kind};
  }
  rows.begin.pop_back();
  for (size_t rank = 0; rank + 1 < rows.begin.size(); ++rank) {
    SortRuns(
        std::span(rows.events).subspan(rows.begin[rank], rows.begin[rank + 1] - rows.begin[rank]));
  }
  return rows;
}

MemoryUse PeakOf(std::span<const TimedEvent> events, MemoryUse use) {
  MemoryUse peak = use;
  for (const TimedEvent& event : events) {
    Apply(event, use);
    if (use.total > peak.total) peak = use;
  }
  return peak;
}

// The peaks by one pass over the events as they lie, without copying or sorting any: right as long
// as each rank's events come in time order, which is so unless its streams overlap. False when some
// do not.
bool PeaksInOrder(const Program& program, const Trace& trace,
                  IdTable<RankClassId, MemoryUse>& peaks) {
  IdTable<RankClassId, MemoryUse> uses = peaks;
  for (const MemoryEvent& event : program.memory_events()) {
    MemoryUse& use = uses[event.rank];
    const Time time = TimeOf(event, trace);
    if (time < use.time) return false;
    Apply({time, Bytes(event.bytes), event.task, event.kind}, use);
    if (use.total > peaks[event.rank].total) peaks[event.rank] = use;
  }
  return true;
}

IdTable<RankClassId, MemoryUse> Residents(const Program& program) {
  IdTable<RankClassId, MemoryUse> residents;
  for (int32_t rank = 0; rank < program.rank_count(); ++rank) {
    residents.push_back(Resident(program, RankClassId(rank)));
  }
  return residents;
}

}  // namespace
}  // namespace memory_cc

IdTable<RankClassId, MemoryUse> PeakMemory(const Program& program, const Trace& trace) {
  ORRERY_CHECK(trace.finish.size() == static_cast<size_t>(program.task_count()))
      << "the trace is of another program";
  const IdTable<RankClassId, MemoryUse> residents = memory_cc::Residents(program);
  IdTable<RankClassId, MemoryUse> peaks = residents;
  if (memory_cc::PeaksInOrder(program, trace, peaks)) return peaks;
  const memory_cc::EventRows rows = memory_cc::SortByRankAndTime(program, trace);
  for (int32_t rank = 0; rank < program.rank_count(); ++rank) {
    peaks[RankClassId(rank)] = memory_cc::PeakOf(rows.of(rank), residents[RankClassId(rank)]);
  }
  return peaks;
}

IdTable<RankClassId, std::vector<MemoryUse>> MemoryTimeline(const Program& program,
                                                            const Trace& trace) {
  ORRERY_CHECK(trace.finish.size() == static_cast<size_t>(program.task_count()))
      << "the trace is of another program";
  const memory_cc::EventRows rows = memory_cc::SortByRankAndTime(program, trace);
  IdTable<RankClassId, std::vector<MemoryUse>> timelines(program.rank_count());
  for (int32_t rank = 0; rank < program.rank_count(); ++rank) {
    std::vector<MemoryUse>& timeline = timelines[RankClassId(rank)];
    timeline.push_back(memory_cc::Resident(program, RankClassId(rank)));
    for (const memory_cc::TimedEvent& event : rows.of(rank)) {
      timeline.push_back(timeline.back());
      memory_cc::Apply(event, timeline.back());
    }
  }
  return timelines;
}

std::vector<MemoryUse> ThinTimeline(std::span<const MemoryUse> timeline, size_t points) {
  ORRERY_CHECK(points >= 2) << points;
  std::vector<MemoryUse> thin;
  if (timeline.empty()) return thin;
  const auto parts = static_cast<__int128>(points - 1);
  const __int128 span = timeline.back().time.picoseconds() + 1;
  const bool all = timeline.size() <= points;
  // Where all have room, each moment is a part of its own.
  const auto part_of = [&](const MemoryUse& use) {
    const __int128 time = use.time.picoseconds();
    return all ? time : time * parts / span;
  };
  for (const MemoryUse& use : timeline) {
    if (thin.empty() || part_of(use) != part_of(thin.back())) {
      thin.push_back(use);
    } else if (use.total > thin.back().total) {
      thin.back() = use;
    }
  }
  if (thin.back().time != timeline.back().time) thin.push_back(timeline.back());
  return thin;
}

}  // namespace orrery::simulator
