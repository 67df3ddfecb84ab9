#include "simulator/activity.h"

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

namespace orrery::simulator {
namespace {

struct Interval {
  Time start;
  Time finish;
};

bool Computes(const Program& program, StreamId stream, const StreamSums& sums) {
  return program.stream(stream).kind == StreamKind::kCompute && sums.computing_tasks > 0;
}

// When a stream computes, or when it communicates: in time order, without overlap, and without gaps
// of no length. A row keeps room for as many intervals as it has tasks.
struct Row {
  size_t begin = 0;
  size_t end = 0;
};

// The rows of the streams that have to be merged with others.
class Intervals {
 public:
  Intervals(const Program& program, const IdTable<StreamId, StreamSums>& sums,
            const IdTable<RankClassId, int32_t>& active_streams)
      : computing_(program.stream_count()),
        communication_(program.stream_count()),
        wanted_(program.stream_count()) {
    size_t size = 0;
    for (int32_t i = 0; i < program.stream_count(); ++i) {
      const StreamId stream(i);
      wanted_[stream] = active_streams[program.stream(stream).rank] > 1;
      if (!wanted_[stream]) continue;
      computing_[stream] = {size, size};
      size += sums[stream].computing_tasks;
      communication_[stream] = {size, size};
      size += sums[stream].communicating_tasks;
    }
    pool_.resize(size);
  }

  bool empty() const { return pool_.empty(); }

  void Fill(const Program& program, const Trace& trace) {
    std::vector<uint8_t> communicates;
    for (int32_t i = 0; i < program.label_count(); ++i) {
      communicates.push_back(program.label(LabelId(i)).kind != TaskKind::kCompute);
    }
    for (int32_t i = 0; i < program.task_count(); ++i) {
      const TaskId task(i);
      const size_t label = static_cast<size_t>(program.label_of(task).index());
      IdTable<StreamId, Row>& rows = communicates[label] ? communication_ : computing_;
      for (const StreamId stream : program.streams_of(task)) {
        if (wanted_[stream]) Append(rows[stream], {trace.start_of(task), trace.finish_of(task)});
      }
    }
  }

  std::span<const Interval> computing(StreamId stream) const { return Of(computing_[stream]); }
  std::span<const Interval> communication(StreamId stream) const {
    return Of(communication_[stream]);
  }

 private:
  std::span<const Interval> Of(const Row& row) const {
    return std::span(pool_).subspan(row.begin, row.end - row.begin);
  }

  // A busy stream becomes one long interval, which makes the merge cheap.
  void Append(Row& row, const Interval& next) {
    if (row.end > row.begin && pool_[row.end - 1].finish == next.start) {
      pool_[row.end - 1].finish = next.finish;
    } else {
      pool_[row.end++] = next;
    }
  }

  std::vector<Interval> pool_;
  IdTable<StreamId, Row> computing_;
  IdTable<StreamId, Row> communication_;
  IdTable<StreamId, uint8_t> wanted_;
};

// The time that `rows` cover, overlaps counted once: a merge of a handful of sorted rows.
Duration Covered(std::vector<std::span<const Interval>> rows) {
  Duration covered;
  Time until;
  std::erase_if(rows, [](std::span<const Interval> row) { return row.empty(); });
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

// The rows of a rank on which streams overlap.
struct RankRows {
  std::vector<std::span<const Interval>> computing;
  std::vector<std::span<const Interval>> all;
};

void Merge(const Program& program, const Trace& trace, Intervals& intervals,
           const IdTable<RankClassId, int32_t>& active_streams,
           IdTable<RankClassId, Activity>& activities) {
  intervals.Fill(program, trace);
  IdTable<RankClassId, RankRows> ranks(program.rank_count());
  for (int32_t i = 0; i < program.stream_count(); ++i) {
    const StreamId stream(i);
    RankRows& rank = ranks[program.stream(stream).rank];
    rank.all.push_back(intervals.communication(stream));
    if (program.stream(stream).kind != StreamKind::kCompute) continue;
    rank.all.push_back(intervals.computing(stream));
    rank.computing.push_back(intervals.computing(stream));
  }
  for (int32_t i = 0; i < program.rank_count(); ++i) {
    const RankClassId id(i);
    if (active_streams[id] <= 1) continue;
    activities[id] = {.computing = Covered(ranks[id].computing), .active = Covered(ranks[id].all)};
  }
}

}  // namespace

IdTable<RankClassId, Activity> ActivityOfRanks(const Program& program, const Trace& trace,
                                               const IdTable<StreamId, StreamSums>& sums) {
  IdTable<RankClassId, Activity> activities(program.rank_count());
  IdTable<RankClassId, int32_t> active_streams(program.rank_count());
  for (int32_t i = 0; i < program.stream_count(); ++i) {
    const StreamId stream(i);
    const bool computes = Computes(program, stream, sums[stream]);
    if (!computes && sums[stream].communicating_tasks == 0) continue;
    const RankClassId rank = program.stream(stream).rank;
    ++active_streams[rank];
    const Duration computing = computes ? sums[stream].computing : Duration(0);
    activities[rank].computing += computing;
    activities[rank].active += computing + sums[stream].communicating;
  }
  // The sums are right where one stream is active alone; where more are, they may overlap.
  Intervals intervals(program, sums, active_streams);
  if (!intervals.empty()) Merge(program, trace, intervals, active_streams, activities);
  return activities;
}

}  // namespace orrery::simulator
