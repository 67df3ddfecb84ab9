#include "simulator/engine/longest_path.h"

#include <algorithm>

#include "simulator/engine/slow_down.h"
#include "simulator/program/task_order.h"
#include "simulator/program/time_alone.h"
#include "support/check.h"

namespace orrery::simulator {
namespace longest_path_cc {
namespace {

// The loop that runs once a task, over bare arrays: its speed is that of reading them.
class Sweep {
 public:
  Sweep(const Program& program, Trace& trace)
      : durations_(program.durations().data()),
        stream_begin_(program.stream_offsets().data()),
        streams_(program.stream_pool().data()),
        before_begin_(program.dependency_offsets().data()),
        before_(program.dependency_pool().data()),
        clock_(static_cast<size_t>(program.stream_count())),
        start_(trace.start.data()),
        finish_(trace.finish.data()) {}

  void Run(size_t task) {
    Time start;
    for (uint32_t i = before_begin_[task]; i < before_begin_[task + 1]; ++i) {
      start = std::max(start, finish_[before_[i].index()]);
    }
    const uint32_t begin = stream_begin_[task];
    const uint32_t end = stream_begin_[task + 1];
    if (end - begin == 1) [[likely]] {
      Time& clock = clock_[Row(streams_[begin])];
      start = std::max(start, clock);
      clock = finish_[task] = Finish(start, task);
    } else {
      for (uint32_t i = begin; i < end; ++i) start = std::max(start, clock_[Row(streams_[i])]);
      finish_[task] = Finish(start, task);
      for (uint32_t i = begin; i < end; ++i) clock_[Row(streams_[i])] = finish_[task];
    }
    start_[task] = start;
  }

  Time makespan() const {
    return clock_.empty() ? Time() : *std::max_element(clock_.begin(), clock_.end());
  }

 private:
  // Both are at most kEndOfTime, and so is what they make.
  Time Finish(Time start, size_t task) const {
    return std::min(start + durations_[task], kEndOfTime);
  }
  static size_t Row(StreamId stream) { return static_cast<size_t>(stream.index()); }

  const Duration* durations_;
  const uint32_t* stream_begin_;
  const StreamId* streams_;
  const uint32_t* before_begin_;
  const TaskId* before_;
  std::vector<Time> clock_;  // by stream: when its last task so far finishes
  Time* start_;
  Time* finish_;
};

}  // namespace
}  // namespace longest_path_cc

void RunLongestPath(const Program& program, Trace& trace) {
  const size_t count = static_cast<size_t>(program.task_count());
  trace.start.resize(count);
  trace.finish.resize(count);
  ORRERY_CHECK(!program.has_flows()) << "only a network model can time a flow: use RunEvents";
  ORRERY_CHECK(!HasSlowDown(program)) << "ranks slow down as they communicate: use RunEvents";
  longest_path_cc::Sweep sweep(program, trace);
  if (program.ordered()) {
    for (size_t task = 0; task < count; ++task) sweep.Run(task);
  } else {
    const std::vector<TaskId> order = RunnableOrder(program);
    ORRERY_CHECK(order.size() == count) << VerifyAcyclic(program).ToString();
    for (const TaskId task : order) sweep.Run(static_cast<size_t>(task.index()));
  }
  trace.makespan = sweep.makespan();
}

Trace RunLongestPath(const Program& program) {
  Trace trace;
  RunLongestPath(program, trace);
  return trace;
}

}  // namespace orrery::simulator
