#ifndef ORRERY_SIMULATOR_ENGINE_SLOW_DOWN_H_
#define ORRERY_SIMULATOR_ENGINE_SLOW_DOWN_H_

#include <cstdint>
#include <span>
#include <vector>

#include "simulator/network/event_heap.h"
#include "simulator/program/program.h"
#include "support/id_table.h"
#include "support/units.h"

// Kernels that move data take some of the cores of a chip. While any collective or send runs on a
// rank with a slow-down of s, what computes there goes on at 1 - s of its speed, from the moment
// when the first of them starts to the moment when the last has finished; two at once slow it down
// no more than one.
//
// What computes is a task of kind compute with a duration on a compute stream; copies on other
// streams (to the host) go on as they are. A task that computes on several ranks at once has the
// speed of the slowest. Speeds are whole billionths, and work left is counted in billionths of a
// picosecond, exactly; the moment of the finish is rounded up, once.

namespace orrery::simulator {

/// Whether any rank of `program` can be slowed down: it has a slow-down and more streams than one.
bool HasSlowDown(const Program& program);

/// The work that is left of tasks that compute on ranks with a slow-down. Moments must not go
/// backwards; `program` must outlive this.
class SlowDown {
 public:
  explicit SlowDown(const Program& program);

  /// Notes that `task` starts, and returns when it finishes if nothing else happens. `sequence` is
  /// that of the event of its finish. For tasks with a flow, the moment means nothing.
  Time Start(TaskId task, Time now, uint32_t sequence);
  /// Notes that `task` has finished.
  void Finish(TaskId task);
  /// Whether the finish of a task has moved to another moment than that of `event`, or was before.
  bool Moved(const Event& event) const;
  /// Whether communication began or ended on a rank since `Settle`.
  bool changed() const { return !changed_.empty(); }
  /// The finishes that have moved by what began and ended up to `now`, with their sequence numbers.
  /// The span is good until the next call.
  std::span<const Event> Settle(Time now);

 private:
  using Wide = unsigned __int128;
  // Of a task that computes.
  struct Work {
    TaskId task;
    Wide left = 0;  // at `since`
    uint64_t speed = 0;
    Time since;
    Time due;
    uint32_t sequence = 0;
  };
  struct Rank {
    uint64_t slow_speed = 0;
    int32_t communicating = 0;            // tasks under way
    bool changed = false;                 // and named in `changed_`
    std::vector<int32_t> computing = {};  // rows of `work_`
  };

  bool Computes(TaskId task, StreamId stream) const;
  void Communicate(TaskId task, int32_t more);
  uint64_t SpeedOf(TaskId task) const;
  int32_t TakeRow(TaskId task);
  void Update(Work& work, Time now);

  const Program& program_;
  std::vector<bool> communicates_;  // by label
  IdTable<RankClassId, Rank> ranks_;
  std::vector<RankClassId> changed_;
  std::vector<int32_t> row_of_;  // by task: of `work_`, or one of the two below
  std::vector<Work> work_;
  std::vector<int32_t> free_rows_;
  std::vector<Event> moved_;
};

}  // namespace orrery::simulator

#endif  // ORRERY_SIMULATOR_ENGINE_SLOW_DOWN_H_
