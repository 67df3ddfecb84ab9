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

// The events of one rank after another, each in time order. The order of the program decides ties:
// both sorts are stable. Of all ranks there are only places: a program may have millions of events.
class EventsOfRanks {
 public:
  EventsOfRanks(const Program& program, const Trace& trace)
      : program_(program),
        trace_(trace),
        begin_(static_cast<size_t>(program.rank_count()) + 2),
        places_(program.memory_events().size()) {
    const auto row_of = [](const MemoryEvent& event) {
      return static_cast<size_t>(event.rank.index());
    };
    // Counted two places on: filling row r moves begin[r + 1] from where it starts to where it
    // ends.
    for (const MemoryEvent& event : program.memory_events()) ++begin_[row_of(event) + 2];
    std::partial_sum(begin_.begin(), begin_.end(), begin_.begin());
    uint32_t place = 0;
    for (const MemoryEvent& event : program.memory_events()) {
      places_[begin_[row_of(event) + 1]++] = place++;
    }
  }

  // Good until the next rank's.
  std::span<const TimedEvent> Of(RankClassId rank) {
    const auto row = static_cast<size_t>(rank.index());
    events_.clear();
    for (size_t at = begin_[row]; at < begin_[row + 1]; ++at) {
      const MemoryEvent& event = program_.memory_events()[places_[at]];
      events_.push_back({TimeOf(event, trace_), Bytes(event.bytes), event.task, event.kind});
    }
    SortRuns(events_);
    return events_;
  }

 private:
  const Program& program_;
  const Trace& trace_;
  std::vector<uint32_t> begin_;   // in places_: rank r goes from begin_[r] to begin_[r + 1]
  std::vector<uint32_t> places_;  // among the events of the program
  std::vector<TimedEvent> events_;
};

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
  memory_cc::EventsOfRanks events(program, trace);
  for (int32_t rank = 0; rank < program.rank_count(); ++rank) {
    const RankClassId id(rank);
    peaks[id] = memory_cc::PeakOf(events.Of(id), residents[id]);
  }
  return peaks;
}

void VisitMemory(const Program& program, const Trace& trace, std::span<const RankClassId> ranks,
                 absl::FunctionRef<void(RankClassId rank, const MemoryUse& use)> visit) {
  ORRERY_CHECK(trace.finish.size() == static_cast<size_t>(program.task_count()))
      << "the trace is of another program";
  memory_cc::EventsOfRanks events(program, trace);
  for (const RankClassId rank : ranks) {
    MemoryUse use = memory_cc::Resident(program, rank);
    visit(rank, use);
    for (const memory_cc::TimedEvent& event : events.Of(rank)) {
      memory_cc::Apply(event, use);
      visit(rank, use);
    }
  }
}

IdTable<RankClassId, std::vector<MemoryUse>> MemoryTimeline(const Program& program,
                                                            const Trace& trace) {
  IdTable<RankClassId, std::vector<MemoryUse>> timelines(program.rank_count());
  std::vector<RankClassId> ranks;
  for (int32_t i = 0; i < program.rank_count(); ++i) ranks.emplace_back(i);
  VisitMemory(program, trace, ranks,
              [&](RankClassId rank, const MemoryUse& use) { timelines[rank].push_back(use); });
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
