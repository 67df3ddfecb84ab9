#include "simulator/event_queue.h"

#include <algorithm>
#include <optional>
#include <vector>

#include "absl/strings/str_cat.h"
#include "simulator/event_heap.h"
#include "simulator/task_order.h"
#include "simulator/time_alone.h"
#include "support/check.h"
#include "support/status.h"

namespace orrery::simulator {
namespace {

// The messages under way. The model is asked only when time is about to pass, and only when a
// message started or went on since: a thousand that start at a moment are one question.
class Network {
 public:
  explicit Network(NetworkModel& model) : model_(model) {
    ORRERY_CHECK(!model.NextCompletion(Time(0)).has_value()) << "the network is not fresh";
  }

  // When something happens next; nothing when no message is under way.
  const std::optional<Time>& Next() {
    if (!asked_) next_ = active_ == 0 ? std::nullopt : model_.NextCompletion(now_);
    asked_ = true;
    return next_;
  }

  void Start(TaskId message, const Flow& flow, Time now) {
    if (now > now_) {
      const std::span<const TaskId> early = model_.Advance(now);
      ORRERY_CHECK(early.empty()) << early.front() << " arrived before it was to";
      now_ = now;
    }
    model_.Start(message, flow);
    ++active_;
    asked_ = false;
  }

  // Lets time pass to what happens next, and makes `arrived` what arrives then.
  void Advance(std::vector<TaskId>& arrived) {
    now_ = *next_;
    const std::span<const TaskId> messages = model_.Advance(now_);
    arrived.assign(messages.begin(), messages.end());
    active_ -= static_cast<int32_t>(arrived.size());
    asked_ = false;
  }

 private:
  NetworkModel& model_;
  Time now_;
  std::optional<Time> next_;
  bool asked_ = true;  // `next_` holds
  int32_t active_ = 0;
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
    while (now_ < kEndOfTime) {
      if (!events_.empty() && events_.top().time == now_) {
        FinishTop();  // time stands still, and the network need not be asked
      } else if (network_.Next().has_value() &&
                 (events_.empty() || *network_.Next() <= events_.top().time)) {
        FinishArrivals();
      } else if (!events_.empty()) {
        FinishTop();
      } else {
        break;
      }
    }
    if (now_ >= kEndOfTime) return Endless();
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
    now_ = *network_.Next();
    network_.Advance(arrived_);
    for (const TaskId task : arrived_) Finish(task);
  }

  absl::Status Endless() const {
    return absl::InvalidArgumentError(absl::StrCat(
        "simulation: after ", finished_, " of ", program_.task_count(),
        " tasks, what runs goes on beyond ", ToString(kEndOfTime),
        ", wanted a step that ends before; try checking the durations, sizes and rates"));
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

// Whether all ids name one of `count` rows.
template <typename IdType>
bool AllWithin(std::span<const IdType> ids, int32_t count) {
  uint32_t highest = 0;  // as unsigned, the id that names nothing is the highest
  for (const IdType id : ids) highest = std::max(highest, static_cast<uint32_t>(id.index()));
  return ids.empty() || highest < static_cast<uint32_t>(count);
}

bool AllWithin(std::span<const Duration> durations) {
  Duration least(0);
  Duration most(0);
  for (const Duration duration : durations) {
    least = std::min(least, duration);
    most = std::max(most, duration);
  }
  return least == Duration(0) && most <= kEndOfTime;
}

bool FlowsWithin(const Program& program) {
  int32_t highest = -1;
  for (const FlowId flow : program.task_flows()) highest = std::max(highest, flow.index());
  return highest < program.flow_count();
}

// What could not be played at all, at the price of a look at each number.
absl::Status VerifyRunnable(const Program& program) {
  bool sound = FlowsWithin(program) && AllWithin(program.durations()) &&
               AllWithin(program.task_labels(), program.label_count()) &&
               AllWithin(program.stream_pool(), program.stream_count()) &&
               AllWithin(program.dependency_pool(), program.task_count());
  for (int32_t i = 0; i < program.stream_count() && sound; ++i) {
    const RankClassId rank = program.stream(StreamId(i)).rank;
    sound = rank.valid() && rank.index() < program.rank_count();
  }
  if (!sound) return program.Verify();
  return program.VerifyNetwork();
}

}  // namespace

absl::StatusOr<Trace> RunEvents(const Program& program, NetworkModel& network) {
  ORRERY_RETURN_IF_ERROR(VerifyRunnable(program));
  return Engine(program, network).Run();
}

}  // namespace orrery::simulator
