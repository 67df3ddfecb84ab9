#include "simulator/activity.h"

#include <algorithm>
#include <cstdint>
#include <limits>
#include <numeric>
#include <span>
#include <vector>

namespace orrery::simulator {
namespace {

struct Interval {
  Time start;
  Time finish;
};

// Intervals one row after the other; each row is in time order and without overlap.
struct IntervalRows {
  std::vector<uint32_t> begin;  // row i goes from begin[i] to begin[i + 1]
  std::vector<Interval> pool;

  std::span<const Interval> of(size_t row) const {
    return std::span(pool).subspan(begin[row], begin[row + 1] - begin[row]);
  }
};

// A row of each stream for computing (2i) and one for communication (2i + 1).
IntervalRows SortByStream(const Program& program, const Trace& trace) {
  const size_t streams = static_cast<size_t>(program.stream_count());
  std::vector<uint8_t> communicates;
  for (int32_t i = 0; i < program.label_count(); ++i) {
    communicates.push_back(program.label(LabelId(i)).kind != TaskKind::kCompute);
  }
  const auto row_of = [&](StreamId stream, size_t task) {
    const size_t label = static_cast<size_t>(program.task_labels()[task].index());
    return 2 * static_cast<size_t>(stream.index()) + communicates[label];
  };
  IntervalRows rows{.begin = std::vector<uint32_t>(2 * streams + 2),
                    .pool = std::vector<Interval>(program.stream_pool().size())};
  // Counted two places on: filling row i moves begin[i + 1] from where it starts to where it ends.
  const size_t tasks = static_cast<size_t>(program.task_count());
  const auto for_each = [&](auto visit) {
    for (size_t task = 0; task < tasks; ++task) {
      for (const StreamId stream : program.streams_of(TaskId(static_cast<int32_t>(task)))) {
        visit(row_of(stream, task), task);
      }
    }
  };
  for_each([&rows](size_t row, size_t) { ++rows.begin[row + 2]; });
  std::partial_sum(rows.begin.begin(), rows.begin.end(), rows.begin.begin());
  for_each([&](size_t row, size_t task) {
    rows.pool[rows.begin[row + 1]++] = {trace.start[task], trace.finish[task]};
  });
  rows.begin.pop_back();
  return rows;
}

// The time that `rows` cover, overlaps counted once: a merge of a handful of sorted rows.
Duration Covered(std::vector<std::span<const Interval>>& rows) {
  Duration covered;
  Time until;
  while (!rows.empty()) {
    size_t first = 0;
    for (size_t row = 1; row < rows.size(); ++row) {
      if (rows[row].front().start < rows[first].front().start) first = row;
    }
    const Interval next = rows[first].front();
    covered += std::max(next.finish, until) - std::max(next.start, until);
    until = std::max(until, next.finish);
    rows[first] = rows[first].subspan(1);
    if (rows[first].empty()) rows.erase(rows.begin() + static_cast<ptrdiff_t>(first));
  }
  return covered;
}

// The rows of each rank that `Covered` is to merge, empty ones left out.
struct RankRows {
  std::vector<std::span<const Interval>> computing;
  std::vector<std::span<const Interval>> communication;
};

IdTable<RankClassId, RankRows> RowsOfRanks(const Program& program, const IntervalRows& rows) {
  IdTable<RankClassId, RankRows> ranks(program.rank_count());
  for (int32_t i = 0; i < program.stream_count(); ++i) {
    const Stream& stream = program.stream(StreamId(i));
    const std::span<const Interval> computing = rows.of(2 * static_cast<size_t>(i));
    const std::span<const Interval> communication = rows.of(2 * static_cast<size_t>(i) + 1);
    if (stream.kind == StreamKind::kCompute && !computing.empty()) {
      ranks[stream.rank].computing.push_back(computing);
    }
    if (!communication.empty()) ranks[stream.rank].communication.push_back(communication);
  }
  return ranks;
}

}  // namespace

IdTable<RankClassId, Activity> ActivityOfRanks(const Program& program, const Trace& trace) {
  const IntervalRows rows = SortByStream(program, trace);
  IdTable<RankClassId, Activity> activities(program.rank_count());
  IdTable<RankClassId, RankRows> ranks = RowsOfRanks(program, rows);
  for (int32_t i = 0; i < program.rank_count(); ++i) {
    RankRows& rank = ranks[RankClassId(i)];
    std::vector<std::span<const Interval>>& all = rank.communication;
    all.insert(all.end(), rank.computing.begin(), rank.computing.end());
    activities[RankClassId(i)] = {.computing = Covered(rank.computing), .active = Covered(all)};
  }
  return activities;
}

}  // namespace orrery::simulator
