#include "simulator/report/activity.h"

#include <algorithm>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

namespace orrery::simulator {
namespace activity_cc {
namespace {

struct Interval {
  Time start;
  Time finish;
};

bool Computes(const Program& program, StreamId stream, const StreamSums& sums) {
  return program.stream(stream).kind == StreamKind::kCompute && sums.computing_tasks > 0;
}

// A row of a pool, with room for as many as its stream has tasks.
struct Row {
  size_t begin = 0;
  size_t end = 0;
};

// What runs on the streams that have to be merged with others: when they compute, in time order,
// without overlap, and without gaps of no length; and which communication they run.
class StreamRows {
 public:
  StreamRows(const Program& program, const IdTable<StreamId, StreamSums>& sums,
             const IdTable<RankClassId, int32_t>& active_streams)
      : computing_(program.stream_count()),
        communication_(program.stream_count()),
        wanted_(program.stream_count()) {
    size_t intervals = 0, tasks = 0;
    for (int32_t i = 0; i < program.stream_count(); ++i) {
      const StreamId stream(i);
      wanted_[stream] = active_streams[program.stream(stream).rank] > 1;
      if (!wanted_[stream]) continue;
      if (Computes(program, stream, sums[stream])) {
        computing_[stream] = {intervals, intervals};
        intervals += sums[stream].computing_tasks;
        wanted_[stream] = kComputeToo;
      }
      communication_[stream] = {tasks, tasks};
      tasks += sums[stream].communicating_tasks;
    }
    intervals_.resize(intervals);
    tasks_.resize(tasks);
  }

  bool empty() const { return intervals_.empty() && tasks_.empty(); }

  void Fill(const Program& program, const Trace& trace, const CommunicationShares& shares) {
    for (int32_t i = 0; i < program.task_count(); ++i) {
      const TaskId task(i);
      const bool communicates = shares.column_of(program.label_of(task)) >= 0;
      for (const StreamId stream : program.streams_of(task)) {
        if (communicates && wanted_[stream]) {
          tasks_[communication_[stream].end++] = task;
        } else if (!communicates && wanted_[stream] == kComputeToo) {
          Append(computing_[stream], {trace.start_of(task), trace.finish_of(task)});
        }
      }
    }
  }

  std::span<const Interval> computing(StreamId stream) const {
    const Row& row = computing_[stream];
    return std::span(intervals_).subspan(row.begin, row.end - row.begin);
  }
  std::span<const TaskId> communication(StreamId stream) const {
    const Row& row = communication_[stream];
    return std::span(tasks_).subspan(row.begin, row.end - row.begin);
  }

 private:
  static constexpr uint8_t kComputeToo = 2;

  // A busy stream becomes one long interval, which makes the merge cheap.
  void Append(Row& row, const Interval& next) {
    if (row.end > row.begin && intervals_[row.end - 1].finish == next.start) {
      intervals_[row.end - 1].finish = next.finish;
    } else {
      intervals_[row.end++] = next;
    }
  }

  std::vector<Interval> intervals_;
  std::vector<TaskId> tasks_;
  IdTable<StreamId, Row> computing_;
  IdTable<StreamId, Row> communication_;
  IdTable<StreamId, uint8_t> wanted_;
};

// Takes what comes first of the heads of `rows`, none of which is empty; drops a row that ends.
template <typename T, typename Earlier>
T TakeFirst(std::vector<std::span<const T>>& rows, Earlier earlier) {
  size_t first = 0;
  for (size_t row = 1; row < rows.size(); ++row) {
    if (earlier(rows[row].front(), rows[first].front())) first = row;
  }
  const T taken = rows[first].front();
  rows[first] = rows[first].subspan(1);
  if (rows[first].empty()) rows.erase(rows.begin() + static_cast<ptrdiff_t>(first));
  return taken;
}

// One rank on which streams overlap: its rows, none of them empty, and the merge of them.
class RankMerge {
 public:
  void Add(std::span<const Interval> computing, std::span<const TaskId> communication) {
    if (!computing.empty()) computing_.push_back(computing);
    if (!communication.empty()) communication_.push_back(communication);
  }

  Activity Run(const Program& program, const Trace& trace, RankClassId rank,
               CommunicationShares& shares) {
    const std::vector<Interval> computing = MergeComputing();
    Activity activity;
    for (const Interval& interval : computing)
      activity.computing += interval.finish - interval.start;
    activity.active = activity.computing;
    size_t next = 0;  // of `computing`: those before it have ended
    Time until;       // everything before is of communication that started earlier
    while (!communication_.empty()) {
      const TaskId task = TakeFirst(communication_, [&](TaskId a, TaskId b) {
        return std::pair(trace.start_of(a), a) < std::pair(trace.start_of(b), b);
      });
      const Interval own{std::max(trace.start_of(task), until), trace.finish_of(task)};
      if (own.finish <= own.start) continue;
      until = own.finish;
      while (next < computing.size() && computing[next].finish <= own.start) ++next;
      const Duration exposed = Uncovered(own, std::span(computing).subspan(next));
      activity.active += exposed;
      shares.at(rank, shares.column_of(program.label_of(task))).exposed += exposed;
    }
    return activity;
  }

 private:
  // When any stream computes: ascending, without overlap.
  std::vector<Interval> MergeComputing() {
    std::vector<Interval> merged;
    while (!computing_.empty()) {
      const Interval next = TakeFirst(
          computing_, [](const Interval& a, const Interval& b) { return a.start < b.start; });
      if (!merged.empty() && next.start <= merged.back().finish) {
        merged.back().finish = std::max(merged.back().finish, next.finish);
      } else {
        merged.push_back(next);
      }
    }
    return merged;
  }

  // How much of `interval` none of `covers` covers; the first of them ends within it or later.
  static Duration Uncovered(const Interval& interval, std::span<const Interval> covers) {
    Duration uncovered = interval.finish - interval.start;
    for (const Interval& cover : covers) {
      if (cover.start >= interval.finish) break;
      uncovered -= std::min(cover.finish, interval.finish) - std::max(cover.start, interval.start);
    }
    return uncovered;
  }

  std::vector<std::span<const Interval>> computing_;
  std::vector<std::span<const TaskId>> communication_;
};

void Merge(const Program& program, const Trace& trace, const StreamRows& rows,
           const IdTable<RankClassId, int32_t>& active_streams, CommunicationShares& shares,
           IdTable<RankClassId, Activity>& activities) {
  IdTable<RankClassId, RankMerge> ranks(program.rank_count());
  for (int32_t i = 0; i < program.stream_count(); ++i) {
    const StreamId stream(i);
    ranks[program.stream(stream).rank].Add(rows.computing(stream), rows.communication(stream));
  }
  for (int32_t i = 0; i < program.rank_count(); ++i) {
    const RankClassId id(i);
    if (active_streams[id] > 1) activities[id] = ranks[id].Run(program, trace, id, shares);
  }
}

}  // namespace
}  // namespace activity_cc

IdTable<RankClassId, Activity> ActivityOfRanks(const Program& program, const Trace& trace,
                                               const IdTable<StreamId, StreamSums>& sums,
                                               CommunicationShares& shares) {
  IdTable<RankClassId, Activity> activities(program.rank_count());
  IdTable<RankClassId, int32_t> active_streams(program.rank_count());
  for (int32_t i = 0; i < program.stream_count(); ++i) {
    const StreamId stream(i);
    const bool computes = activity_cc::Computes(program, stream, sums[stream]);
    if (!computes && sums[stream].communicating_tasks == 0) continue;
    const RankClassId rank = program.stream(stream).rank;
    active_streams[rank] += sums[stream].has_parts ? 2 : 1;
    const Duration computing = computes ? sums[stream].computing : Duration(0);
    activities[rank].computing += computing;
    activities[rank].active += computing + sums[stream].communicating;
  }
  // The sums are right where one stream is active alone; where more are, they may overlap.
  activity_cc::StreamRows rows(program, sums, active_streams);
  if (!rows.empty()) {
    rows.Fill(program, trace, shares);
    activity_cc::Merge(program, trace, rows, active_streams, shares, activities);
  }
  for (int32_t i = 0; i < program.rank_count(); ++i) {
    if (active_streams[RankClassId(i)] <= 1) shares.Expose(RankClassId(i));
  }
  // A task with communication inside is one interval until here.
  for (int32_t i = 0; i < program.stream_count(); ++i) {
    activities[program.stream(StreamId(i)).rank].computing -= sums[StreamId(i)].exposed_inside;
  }
  return activities;
}

}  // namespace orrery::simulator
