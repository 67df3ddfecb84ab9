#include "simulator/program/task_order.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "support/check.h"

namespace orrery::simulator {
namespace task_order_cc {
namespace {

void CheckDependencies(const Program& program) {
  if (program.ordered()) return;  // then each names an earlier task
  for (const TaskId before : program.dependency_pool()) {
    ORRERY_CHECK(before.valid() && before.index() < program.task_count())
        << before << " is none of " << program.task_count() << " tasks: Verify the program first";
  }
}

// Calls `edge(before, after)` for every pair of tasks of which the second waits for the first.
template <typename Edge>
void ForEachEdge(const Program& program, Edge edge) {
  std::vector<int32_t> last(static_cast<size_t>(program.stream_count()), -1);
  for (int32_t task = 0; task < program.task_count(); ++task) {
    for (const StreamId stream : program.streams_of(TaskId(task))) {
      int32_t& before = last[static_cast<size_t>(stream.index())];
      if (before >= 0) edge(before, task);
      before = task;
    }
    for (const TaskId before : program.dependencies_of(TaskId(task))) edge(before.index(), task);
  }
}

// What keeps a task from running.
struct Wait {
  TaskId on;
  StreamId stream;  // on which `on` comes first; invalid when it is a dependency
};

// Finds what a task that never ran waits for; made once a message, as it sweeps the program.
class Waits {
 public:
  Waits(const Program& program, const std::vector<bool>& finished)
      : program_(program), finished_(finished), previous_(program.stream_pool().size()) {
    std::vector<TaskId> last(static_cast<size_t>(program.stream_count()));
    for (int32_t task = 0; task < program.task_count(); ++task) {
      uint32_t position = program.stream_offsets()[static_cast<size_t>(task)];
      for (const StreamId stream : program.streams_of(TaskId(task))) {
        previous_[position++] =
            std::exchange(last[static_cast<size_t>(stream.index())], TaskId(task));
      }
    }
  }

  // Something unfinished that `task` waits for. There is always one: a task that waits for nothing
  // has run.
  Wait Of(TaskId task) const {
    for (const TaskId before : program_.dependencies_of(task)) {
      if (!Finished(before)) return {.on = before, .stream = {}};
    }
    uint32_t position = program_.stream_offsets()[static_cast<size_t>(task.index())];
    for (const StreamId stream : program_.streams_of(task)) {
      const TaskId before = previous_[position++];
      if (before.valid() && !Finished(before)) return {.on = before, .stream = stream};
    }
    ORRERY_CHECK(false) << task << " waits for nothing and never ran";
    return {};
  }

 private:
  bool Finished(TaskId task) const { return finished_[static_cast<size_t>(task.index())]; }

  const Program& program_;
  const std::vector<bool>& finished_;
  std::vector<TaskId> previous_;  // by position in the stream pool: the task before on that stream
};

std::string DescribeStream(const Program& program, StreamId id) {
  const Stream& stream = program.stream(id);
  return absl::StrCat(ToString(stream.rank), " ", ToString(stream.kind));
}

std::string DescribeWait(const Program& program, TaskId task, const Wait& wait) {
  return absl::StrCat(Describe(program, task), " waits for ", ToString(wait.on),
                      wait.stream.valid()
                          ? absl::StrCat(", before it on ", DescribeStream(program, wait.stream))
                          : ", which it depends on");
}

}  // namespace
}  // namespace task_order_cc

SuccessorRows Successors(const Program& program) {
  task_order_cc::CheckDependencies(program);
  const size_t count = static_cast<size_t>(program.task_count());
  SuccessorRows rows{.begin = std::vector<uint32_t>(count + 2),
                     .pool = {},
                     .waits_for = std::vector<int32_t>(count)};
  // Counted two places on: after the sum, begin[t + 1] is where row t starts, and filling row t
  // moves it to where row t ends. No second array of cursors.
  task_order_cc::ForEachEdge(program, [&rows](int32_t before, int32_t after) {
    ++rows.begin[static_cast<size_t>(before) + 2];
    ++rows.waits_for[static_cast<size_t>(after)];
  });
  std::partial_sum(rows.begin.begin(), rows.begin.end(), rows.begin.begin());
  rows.pool.resize(rows.begin.back());
  task_order_cc::ForEachEdge(program, [&rows](int32_t before, int32_t after) {
    rows.pool[rows.begin[static_cast<size_t>(before) + 1]++] = after;
  });
  rows.begin.pop_back();
  return rows;
}

std::vector<TaskId> RunnableOrder(const Program& program) {
  std::vector<TaskId> order;
  order.reserve(static_cast<size_t>(program.task_count()));
  if (program.ordered()) {
    for (int32_t task = 0; task < program.task_count(); ++task) order.emplace_back(task);
    return order;
  }
  SuccessorRows successors = Successors(program);
  for (int32_t task = 0; task < program.task_count(); ++task) {
    if (successors.waits_for[static_cast<size_t>(task)] == 0) order.emplace_back(task);
  }
  for (size_t next = 0; next < order.size(); ++next) {  // `order` is also the queue
    for (const int32_t after : successors.of(order[next].index())) {
      if (--successors.waits_for[static_cast<size_t>(after)] == 0) order.emplace_back(after);
    }
  }
  return order;
}

std::string Describe(const Program& program, TaskId task) {
  const LabelId label = program.label_of(task);
  const bool labelled = label.valid() && label.index() < program.label_count();
  return absl::StrCat(
      ToString(task), " \"", labelled ? program.label(label).name : absl::string_view(), "\" (",
      absl::StrJoin(program.streams_of(task), ", ",
                    [&program](std::string* out, StreamId stream) {
                      absl::StrAppend(out, task_order_cc::DescribeStream(program, stream));
                    }),
      ")");
}

std::string DescribeCycle(const Program& program, const std::vector<bool>& finished) {
  size_t stuck = 0;
  while (stuck < finished.size() && finished[stuck]) ++stuck;
  ORRERY_CHECK(stuck < finished.size()) << "no task is left over";
  const task_order_cc::Waits waits(program, finished);
  // From any stuck task, whom it waits for leads onto a cycle; then once around.
  std::vector<bool> seen(finished.size());
  TaskId first(static_cast<int32_t>(stuck));
  while (!seen[static_cast<size_t>(first.index())]) {
    seen[static_cast<size_t>(first.index())] = true;
    first = waits.Of(first).on;
  }
  std::vector<std::string> lines;
  TaskId task = first;
  do {
    const task_order_cc::Wait wait = waits.Of(task);
    lines.push_back(task_order_cc::DescribeWait(program, task, wait));
    task = wait.on;
  } while (task != first);
  return absl::StrJoin(lines, "; ");
}

absl::Status VerifyAcyclic(const Program& program) {
  if (program.ordered()) return absl::OkStatus();
  const std::vector<TaskId> order = RunnableOrder(program);
  const size_t count = static_cast<size_t>(program.task_count());
  if (order.size() == count) return absl::OkStatus();
  std::vector<bool> finished(count);
  for (const TaskId task : order) finished[static_cast<size_t>(task.index())] = true;
  return absl::InvalidArgumentError(
      absl::StrCat("program: deadlock: ", count - order.size(), " of ", count,
                   " tasks can never start: ", DescribeCycle(program, finished),
                   ", wanted an order in which each task runs after all that it waits for; try "
                   "adding the tasks of each stream in the order in which they run"));
}

}  // namespace orrery::simulator
