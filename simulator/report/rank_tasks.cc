#include "simulator/report/rank_tasks.h"

#include <numeric>

namespace orrery::simulator {

RankTasks::RankTasks(const Program& program)
    : begin_(static_cast<size_t>(program.rank_count()) + 2), pool_(program.stream_pool().size()) {
  const auto row_of = [&](StreamId stream) {
    return static_cast<size_t>(program.stream(stream).rank.index());
  };
  // Counted two places on: filling row r moves begin[r + 1] from where it starts to where it ends.
  for (const StreamId stream : program.stream_pool()) ++begin_[row_of(stream) + 2];
  std::partial_sum(begin_.begin(), begin_.end(), begin_.begin());
  for (int32_t i = 0; i < program.task_count(); ++i) {
    for (const StreamId stream : program.streams_of(TaskId(i))) {
      pool_[begin_[row_of(stream) + 1]++] = {TaskId(i), stream};
    }
  }
}

}  // namespace orrery::simulator
