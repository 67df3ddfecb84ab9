#ifndef ORRERY_SIMULATOR_REPORT_RANK_TASKS_H_
#define ORRERY_SIMULATOR_REPORT_RANK_TASKS_H_

#include <cstdint>
#include <span>
#include <vector>

#include "simulator/program/program.h"

namespace orrery::simulator {

/// A task on one of the streams that it occupies.
struct RankTask {
  TaskId task;
  StreamId stream;
};

/// The tasks of each rank class, once for each stream, in the order of the program: in that of time
/// on each stream. 8 bytes each.
class RankTasks {
 public:
  explicit RankTasks(const Program& program);

  std::span<const RankTask> of(RankClassId rank) const {
    const auto row = static_cast<size_t>(rank.index());
    return std::span(pool_).subspan(begin_[row], begin_[row + 1] - begin_[row]);
  }

 private:
  std::vector<size_t> begin_;  // in pool_: rank r goes from begin_[r] to begin_[r + 1]
  std::vector<RankTask> pool_;
};

}  // namespace orrery::simulator

#endif  // ORRERY_SIMULATOR_REPORT_RANK_TASKS_H_
