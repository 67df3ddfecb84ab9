#ifndef ORRERY_SIMULATOR_JITTER_WAITS_H_
#define ORRERY_SIMULATOR_JITTER_WAITS_H_

#include <cstdint>
#include <functional>
#include <vector>

#include "simulator/program/program.h"
#include "simulator/program/trace.h"
#include "support/id_table.h"
#include "support/units.h"

namespace orrery::simulator {

/// Who waits for whom while nothing computes: the time from when a rank has come to a collective or
/// a send until the last rank of it comes counts as waiting for that one. It counts where a kernel
/// of the waiting rank could not start before; what communication itself takes is no waiting. Where
/// it came to one behind another, the times of both count.
class WaitFinder {
 public:
  /// Gets a rank that waited, for which, and how long.
  using Tell = std::function<void(RankClassId waiting, RankClassId late, Duration time)>;

  /// `program` outlives it; its durations may change.
  explicit WaitFinder(const Program& program);

  /// Tells of all waits in a run of the program.
  void Find(const Trace& trace, const Tell& tell);

 private:
  static size_t Row(TaskId task) { return static_cast<size_t>(task.index()); }
  RankClassId RankOf(StreamId stream) const { return program_.stream(stream).rank; }
  bool Meets(TaskId task) const { return program_.streams_of(task).size() > 1; }
  void Arrive(TaskId task, const Trace& trace);
  TaskId GateOf(TaskId task, Time ready, const Trace& trace) const;
  void WalkBack(TaskId gate, RankClassId rank, Time ready, Time start, const Tell& tell) const;

  const Program& program_;
  // By stream of each task, as they lie in Program::stream_pool: when that rank had come, and the
  // task before on that stream.
  std::vector<Time> arrivals_;
  std::vector<TaskId> before_;
  std::vector<int32_t> last_;  // by task: which of its streams came last
  IdTable<StreamId, TaskId> latest_;
  std::vector<int32_t> stamp_;           // by task: the last that has looked at it
  IdTable<RankClassId, int32_t> place_;  // of a rank, among the streams of a task
  const Trace* trace_ = nullptr;
};

}  // namespace orrery::simulator

#endif  // ORRERY_SIMULATOR_JITTER_WAITS_H_
