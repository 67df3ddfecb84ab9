#include "simulator/report/critical_path.h"

#include <algorithm>

#include "support/id_table.h"

namespace orrery::simulator {
std::vector<TaskId> LatestBefore(const Program& program, const Trace& trace) {
  std::vector<TaskId> before(static_cast<size_t>(program.task_count()));
  IdTable<StreamId, TaskId> last(program.stream_count());
  for (int32_t i = 0; i < program.task_count(); ++i) {
    const TaskId task(i);
    TaskId& latest = before[static_cast<size_t>(i)];
    const auto see = [&](TaskId other) {
      if (!other.valid()) return;
      if (!latest.valid() || trace.finish_of(other) > trace.finish_of(latest)) latest = other;
    };
    for (const StreamId stream : program.streams_of(task)) {
      see(last[stream]);
      last[stream] = task;
    }
    for (const TaskId other : program.dependencies_of(task)) see(other);
  }
  return before;
}

std::vector<PathTask> CriticalPath(const Program& program, const Trace& trace) {
  if (trace.finish.empty()) return {};
  const std::vector<TaskId> before = LatestBefore(program, trace);
  const auto end = std::ranges::max_element(trace.finish);
  TaskId task(static_cast<int32_t>(end - trace.finish.begin()));
  std::vector<PathTask> path;
  while (task.valid()) {
    const TaskId other = before[static_cast<size_t>(task.index())];
    const Time ready = other.valid() ? trace.finish_of(other) : Time(0);
    path.push_back({.task = task, .waited = trace.start_of(task) - ready});
    task = other;
  }
  std::ranges::reverse(path);
  return path;
}

}  // namespace orrery::simulator
