#include "simulator/engine/event_queue.h"

#include <algorithm>
#include <optional>
#include <type_traits>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "simulator/engine/slow_down.h"
#include "simulator/network/event_heap.h"
#include "simulator/program/task_order.h"
#include "simulator/program/time_alone.h"
#include "support/check.h"
#include "support/status.h"

namespace orrery::simulator {
namespace event_queue_cc {
namespace {

// The messages under way. The model is asked only when time is about to pass, and only when a
// message started or went on since: a thousand that start at a moment are one question.
class Network {
 public:
  explicit Network(NetworkModel& model) : model_(model) {
    ORRERY_CHECK(!model.NextCompletion(Time(0)).has_value()) << "the network is not fresh";
  }

  // Whether any message is under way.
  bool active() const { return active_ > 0; }

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

  std::vector<LegDelay> Delays() const {
    const std::span<const LegDelay> delays = model_.delays();
    std::vector<LegDelay> sorted(delays.begin(), delays.end());
    std::ranges::sort(sorted, {},
                      [](const LegDelay& delay) { return std::pair(delay.task, delay.leg); });
    return sorted;
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

// Stands in for a SlowDown where no rank has one, and costs nothing.
struct NoSlowDown {
  explicit NoSlowDown(const Program&) {}
  void Finish(TaskId) {}
  bool Moved(const Event&) const { return false; }
  bool changed() const { return false; }
  std::span<const Event> Settle(Time) { return {}; }
};

template <typename Slowing>
class Engine {
 public:
  Engine(const Program& program, NetworkModel& network)
      : program_(program), network_(network), successors_(Successors(program)), slowing_(program) {
    trace_.start.resize(static_cast<size_t>(program.task_count()));
    trace_.finish.resize(static_cast<size_t>(program.task_count()));
  }

  absl::StatusOr<Trace> Run() {
    StartFirst();
    while (now_ < kEndOfTime) {
      if (slowing_.changed() && (events_.empty() || events_.top().time > now_)) {
        for (const Event& moved : slowing_.Settle(now_)) events_.Push(moved);
        // NOLINTNEXTLINE(bugprone-branch-clone): only else is the network asked, and maybe first
      } else if (!events_.empty() && (events_.top().time == now_ || !network_.active())) {
        FinishTop();  // time stands still, or passes without the network: it need not be asked
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
    trace_.delays = network_.Delays();
    return std::move(trace_);
  }

 private:
  static constexpr bool kSlows = std::is_same_v<Slowing, SlowDown>;

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
    Time finish = now_ + program_.durations()[row];
    if constexpr (kSlows) finish = slowing_.Start(task, now_, events_.next_sequence());
    if (flow.valid()) {
      network_.Start(task, program_.flow(flow), now_);
    } else if (top_is_spent_) {
      events_.ReplaceTop(finish, task);
      top_is_spent_ = false;
    } else {
      events_.Push(finish, task);
    }
  }

  void Finish(TaskId task) {
    slowing_.Finish(task);
    trace_.finish[static_cast<size_t>(task.index())] = now_;
    ++finished_;
    for (const int32_t after : successors_.of(task.index())) {
      if (--successors_.waits_for[static_cast<size_t>(after)] == 0) Start(TaskId(after));
    }
  }

  void FinishTop() {
    const Event event = events_.top();
    ORRERY_DCHECK(event.time >= now_) << event.task;
    if (slowing_.Moved(event)) return events_.Pop();
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
    return absl::OutOfRangeError(absl::StrCat(
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
  [[no_unique_address]] Slowing slowing_;
  EventHeap events_;
  bool top_is_spent_ = false;  // the first event has happened, and another may take its position
  Time now_;
  int32_t finished_ = 0;
  std::vector<TaskId> arrived_;
  Trace trace_;
};

// Whether all ids name one of `count` rows. The sign of either difference tells; bits gathered by
// `or` are the one reduction that every processor does several numbers at a time.
template <typename IdType>
bool AllWithin(std::span<const IdType> ids, int32_t count) {
  const uint32_t last = static_cast<uint32_t>(count) - 1;
  uint32_t signs = 0;
  for (const IdType id : ids) {
    const uint32_t index = static_cast<uint32_t>(id.index());
    signs |= index | (last - index);
  }
  return signs >> 31 == 0;
}

bool AllWithin(std::span<const Duration> durations) {
  static_assert(((kEndOfTime.picoseconds() + 1) & kEndOfTime.picoseconds()) == 0, "all ones");
  int64_t bits = 0;
  for (const Duration duration : durations) bits |= duration.picoseconds();
  return bits >= 0 && bits <= kEndOfTime.picoseconds();
}

bool FlowsWithin(const Program& program) {
  int32_t highest = -1;
  for (const FlowId flow : program.task_flows()) highest = std::max(highest, flow.index());
  return highest < program.flow_count();
}

// What a rank loses while others communicate no chain counts, whose kernels the network times.
absl::Status VerifyChains(const Program& program) {
  if (!HasSlowDown(program)) return absl::OkStatus();
  for (int32_t i = 0; i < program.flow_count(); ++i) {
    if (program.flow(FlowId(i)).legs.empty()) continue;
    return absl::InvalidArgumentError(
        absl::StrCat("simulation: ", ToString(FlowId(i)),
                     " is a chain, where communication slows ranks down; wanted a task for each "
                     "of its flows and kernels"));
  }
  return absl::OkStatus();
}

// What could not be played at all, at the price of a look at each number.
absl::Status VerifyRunnable(const Program& program) {
  bool sound = FlowsWithin(program) && AllWithin(program.durations()) &&
               AllWithin(program.task_labels(), program.label_count()) &&
               AllWithin(program.stream_pool(), program.stream_count()) &&
               AllWithin(program.dependency_pool(), program.task_count());
  for (int32_t i = 0; i < program.rank_count() && sound; ++i) {
    const double slowdown = program.rank(RankClassId(i)).communication_slowdown;
    sound = slowdown >= 0 && slowdown < 1;
  }
  for (int32_t i = 0; i < program.stream_count() && sound; ++i) {
    const RankClassId rank = program.stream(StreamId(i)).rank;
    sound = rank.valid() && rank.index() < program.rank_count();
  }
  if (!sound) return program.Verify();
  ORRERY_RETURN_IF_ERROR(program.VerifyNetwork());
  return VerifyChains(program);
}

}  // namespace
}  // namespace event_queue_cc

absl::StatusOr<Trace> RunEvents(const Program& program, NetworkModel& network) {
  ORRERY_RETURN_IF_ERROR(event_queue_cc::VerifyRunnable(program));
  if (HasSlowDown(program)) return event_queue_cc::Engine<SlowDown>(program, network).Run();
  return event_queue_cc::Engine<event_queue_cc::NoSlowDown>(program, network).Run();
}

}  // namespace orrery::simulator
