#include "simulator/report/critical_path.h"

#include <algorithm>
#include <functional>

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

std::string PathKindOf(const TaskLabel& label) {
  if (label.kind == TaskKind::kCompute) return std::string(ToString(label.phase));
  return std::string(label.communication.empty() ? ToString(label.kind) : label.communication);
}

std::vector<PathPart> PathPartsOf(const Program& program, const Trace& trace) {
  std::vector<PathPart> parts;  // few, in the order in which they come
  const auto add = [&](const std::string& kind, Duration time) {
    if (time == Duration(0)) return;
    auto part = std::ranges::find(parts, kind, &PathPart::kind);
    if (part == parts.end()) part = parts.insert(part, {kind, Duration(0)});
    part->time += time;
  };
  for (const PathTask& row : CriticalPath(program, trace)) {
    add(PathKindOf(program.label(program.label_of(row.task))),
        trace.finish_of(row.task) - trace.start_of(row.task));
    add("waiting", row.waited);
  }
  std::ranges::stable_sort(parts, std::greater<>(), &PathPart::time);
  return parts;
}

}  // namespace orrery::simulator
