#include "simulator/event_queue.h"

#include <algorithm>
#include <optional>
#include <vector>

#include "absl/strings/str_cat.h"
#include "simulator/event_heap.h"
#include "simulator/task_order.h"
#include "support/check.h"

namespace orrery::simulator {
namespace {

// The messages under way. The model is called only when a message starts or arrives, not at every
// event: in between its answers do not change.
class Network {
 public:
  explicit Network(NetworkModel& model) : model_(model) {
    ORRERY_CHECK(!model.NextCompletion(Time(0)).has_value()) << "the network is not fresh";
  }

  // When the next message arrives; nothing when none is under way.
  const std::optional<Time>& next() const { return next_; }

  void Start(TaskId message, const Flow& flow, Time now) {
    if (now > now_) {
      const std::span<const TaskId> early = model_.Advance(now);
      ORRERY_CHECK(early.empty()) << early.front() << " arrived before it was to";
      now_ = now;
    }
    model_.Start(message, flow);
    next_ = model_.NextCompletion(now_);
  }

  // Lets time pass to the next arrival, and appends what arrives to `arrived`.
  void Advance(std::vector<TaskId>& arrived) {
    now_ = *next_;
    const std::span<const TaskId> messages = model_.Advance(now_);
    ORRERY_CHECK(!messages.empty()) << "nothing arrived at " << now_ << ", when something was to";
    arrived.assign(messages.begin(), messages.end());
    next_ = model_.NextCompletion(now_);
  }

 private:
  NetworkModel& model_;
  Time now_;
  std::optional<Time> next_;
};

class Engine {
 public:
  Engine(const Program& program, NetworkModel& network)
      : program_(program), network_(network), successors_(Successors(program)) {
    trace_.start.resize(static_cast<size_t>(program.task_count()));
    trace_.finish.resize(static_cast<size_t>(program.task_count()));
  }

  absl::StatusOr<Trace> Run() {
    StartFirst();
    while (true) {
      if (network_.next().has_value() &&
          (events_.empty() || *network_.next() <= events_.top().time)) {
        FinishArrivals();
      } else if (!events_.empty()) {
        FinishTop();
      } else {
        break;
      }
    }
    if (finished_ < program_.task_count()) return Deadlock();
    trace_.makespan = now_;
    return std::move(trace_);
  }

 private:
  // The tasks that wait for nothing, in the order of their ids.
  void StartFirst() {
    for (int32_t task = 0; task < program_.task_count(); ++task) {
      if (successors_.waits_for[static_cast<size_t>(task)] == 0) Start(TaskId(task));
    }
  }

  void Start(TaskId task) {
    const size_t row = static_cast<size_t>(task.index());
    trace_.start[row] = now_;
    const FlowId flow = program_.flow_of(task);
    if (flow.valid()) {
      network_.Start(task, program_.flow(flow), now_);
    } else if (top_is_spent_) {
      events_.ReplaceTop(now_ + program_.durations()[row], task);
      top_is_spent_ = false;
    } else {
      events_.Push(now_ + program_.durations()[row], task);
    }
  }

  void Finish(TaskId task) {
    trace_.finish[static_cast<size_t>(task.index())] = now_;
    ++finished_;
    for (const int32_t after : successors_.of(task.index())) {
      if (--successors_.waits_for[static_cast<size_t>(after)] == 0) Start(TaskId(after));
    }
  }

  void FinishTop() {
    const Event event = events_.top();
    ORRERY_DCHECK(event.time >= now_) << event.task;
    now_ = event.time;
    top_is_spent_ = true;
    Finish(event.task);
    if (top_is_spent_) events_.Pop();
    top_is_spent_ = false;
  }

  void FinishArrivals() {
    now_ = *network_.next();
    network_.Advance(arrived_);
    for (const TaskId task : arrived_) Finish(task);
  }

  absl::Status Deadlock() const {
    std::vector<bool> ran;
    ran.reserve(successors_.waits_for.size());
    for (const int32_t waits : successors_.waits_for) ran.push_back(waits == 0);
    return absl::InvalidArgumentError(absl::StrCat(
        "simulation: deadlock at ", now_.picoseconds(), " ps: ", program_.task_count() - finished_,
        " of ", program_.task_count(), " tasks never start: ", DescribeCycle(program_, ran),
        ", wanted an order in which each task runs after all that it waits for; try adding the "
        "tasks of each stream in the order in which they run"));
  }

  const Program& program_;
  Network network_;
  SuccessorRows successors_;  // `waits_for` counts down as tasks finish
  EventHeap events_;
  bool top_is_spent_ = false;  // the first event has happened and its place can be taken
  Time now_;
  int32_t finished_ = 0;
  std::vector<TaskId> arrived_;
  Trace trace_;
};

}  // namespace

absl::StatusOr<Trace> RunEvents(const Program& program, NetworkModel& network) {
  return Engine(program, network).Run();
}

}  // namespace orrery::simulator
