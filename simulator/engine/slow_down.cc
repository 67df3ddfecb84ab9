#include "simulator/engine/slow_down.h"

#include <algorithm>
#include <cmath>

#include "simulator/program/time_alone.h"
#include "support/check.h"

namespace orrery::simulator {
namespace slow_down_cc {
namespace {

constexpr uint64_t kFullSpeed = 1'000'000'000;

// Instead of a row: the task is not slowed down, or has finished.
constexpr int32_t kNoRow = -1;
constexpr int32_t kFinished = -2;

uint64_t SlowSpeed(double slowdown) {
  const int64_t speed = std::llround((1 - slowdown) * static_cast<double>(kFullSpeed));
  return static_cast<uint64_t>(std::max<int64_t>(speed, 1));
}

}  // namespace
}  // namespace slow_down_cc

bool HasSlowDown(const Program& program) {
  bool any = false;
  for (int32_t i = 0; i < program.rank_count(); ++i) {
    any |= program.rank(RankClassId(i)).communication_slowdown != 0;
  }
  if (!any) return false;
  IdTable<RankClassId, int32_t> streams(program.rank_count());
  for (int32_t i = 0; i < program.stream_count(); ++i) {
    const RankClassId rank = program.stream(StreamId(i)).rank;
    if (program.rank(rank).communication_slowdown != 0 && ++streams[rank] > 1) return true;
  }
  return false;
}

SlowDown::SlowDown(const Program& program)
    : program_(program),
      ranks_(program.rank_count()),
      row_of_(static_cast<size_t>(program.task_count()), slow_down_cc::kNoRow) {
  for (int32_t i = 0; i < program.label_count(); ++i) {
    communicates_.push_back(program.label(LabelId(i)).kind != TaskKind::kCompute);
  }
  for (int32_t i = 0; i < program.rank_count(); ++i) {
    const RankClassId rank(i);
    ranks_[rank].slow_speed = slow_down_cc::SlowSpeed(program.rank(rank).communication_slowdown);
  }
}

Time SlowDown::Start(TaskId task, Time now, uint32_t sequence) {
  if (communicates_[static_cast<size_t>(program_.label_of(task).index())]) {
    Communicate(task, 1);
    return now + program_.duration(task);
  }
  const Time unslowed = now + program_.duration(task);
  if (program_.flow_of(task).valid()) return unslowed;
  const int32_t row = TakeRow(task);
  if (row == slow_down_cc::kNoRow) return unslowed;
  Work& work = work_[static_cast<size_t>(row)];
  work = {
      .task = task,
      .left = static_cast<Wide>(program_.duration(task).picoseconds()) * slow_down_cc::kFullSpeed,
      .speed = slow_down_cc::kFullSpeed,
      .since = now,
      .due = std::min(unslowed, kEndOfTime),
      .sequence = sequence};
  Update(work, now);
  return work.due;
}

void SlowDown::Finish(TaskId task) {
  if (communicates_[static_cast<size_t>(program_.label_of(task).index())]) {
    Communicate(task, -1);
    return;
  }
  int32_t& row = row_of_[static_cast<size_t>(task.index())];
  if (row == slow_down_cc::kNoRow) return;
  for (const StreamId stream : program_.streams_of(task)) {
    if (Computes(task, stream)) std::erase(ranks_[program_.stream(stream).rank].computing, row);
  }
  free_rows_.push_back(row);
  row = slow_down_cc::kFinished;
}

bool SlowDown::Moved(const Event& event) const {
  const int32_t row = row_of_[static_cast<size_t>(event.task.index())];
  if (row == slow_down_cc::kNoRow) return false;
  return row == slow_down_cc::kFinished || work_[static_cast<size_t>(row)].due != event.time;
}

std::span<const Event> SlowDown::Settle(Time now) {
  moved_.clear();
  for (const RankClassId id : changed_) {
    Rank& rank = ranks_[id];
    rank.changed = false;
    for (const int32_t row : rank.computing) {
      Work& work = work_[static_cast<size_t>(row)];
      const Time before = work.due;
      Update(work, now);
      if (work.due != before) moved_.push_back({work.due, work.sequence, work.task});
    }
  }
  changed_.clear();
  return moved_;
}

bool SlowDown::Computes(TaskId task, StreamId stream) const {
  const Stream& row = program_.stream(stream);
  return row.kind == StreamKind::kCompute &&
         ranks_[row.rank].slow_speed < slow_down_cc::kFullSpeed &&
         !communicates_[static_cast<size_t>(program_.label_of(task).index())];
}

// `more` of what communicates runs on the ranks of `task`. Whether that changes a speed is seen
// once the moment is over: a collective that ends as the next one starts changes nothing.
void SlowDown::Communicate(TaskId task, int32_t more) {
  for (const StreamId stream : program_.streams_of(task)) {
    const RankClassId id = program_.stream(stream).rank;
    Rank& rank = ranks_[id];
    if (rank.slow_speed == slow_down_cc::kFullSpeed) continue;
    rank.communicating += more;
    if (rank.changed || rank.computing.empty()) continue;
    rank.changed = true;
    changed_.push_back(id);
  }
}

uint64_t SlowDown::SpeedOf(TaskId task) const {
  uint64_t speed = slow_down_cc::kFullSpeed;
  for (const StreamId stream : program_.streams_of(task)) {
    if (!Computes(task, stream)) continue;
    const Rank& rank = ranks_[program_.stream(stream).rank];
    if (rank.communicating > 0) speed = std::min(speed, rank.slow_speed);
  }
  return speed;
}

// A row for `task`, named by the ranks on which it computes; kNoRow when none slows it down.
int32_t SlowDown::TakeRow(TaskId task) {
  int32_t row = slow_down_cc::kNoRow;
  for (const StreamId stream : program_.streams_of(task)) {
    if (!Computes(task, stream)) continue;
    if (row == slow_down_cc::kNoRow && free_rows_.empty()) {
      row = static_cast<int32_t>(work_.size());
      work_.emplace_back();
    } else if (row == slow_down_cc::kNoRow) {
      row = free_rows_.back();
      free_rows_.pop_back();
    }
    ranks_[program_.stream(stream).rank].computing.push_back(row);
  }
  row_of_[static_cast<size_t>(task.index())] = row;
  return row;
}

// Brings what is left to `now`, and the finish to what the speed is from there on.
void SlowDown::Update(Work& work, Time now) {
  const uint64_t speed = SpeedOf(work.task);
  if (speed == work.speed) return;
  const Wide done = static_cast<Wide>((now - work.since).picoseconds()) * work.speed;
  work.left = work.left > done ? work.left - done : 0;
  work.since = now;
  work.speed = speed;
  const Wide picoseconds = (work.left + speed - 1) / speed;
  const auto rest = static_cast<Wide>((kEndOfTime - now).picoseconds());
  work.due = now + Duration(static_cast<int64_t>(std::min(picoseconds, rest)));
}

}  // namespace orrery::simulator
