#include "search/runs/skip_ahead.h"

#include <algorithm>
#include <functional>
#include <map>
#include <set>
#include <span>
#include <utility>

#include "simulator/program/time_alone.h"

namespace orrery::search {
namespace skip_ahead_cc {
namespace {

using simulator::MemoryEvent;
using simulator::Program;
using simulator::TaskId;

// Steps of some microbatches, from that of a forward of the first stage up to that of a later one.
struct Window {
  int32_t begin_slot = 0, end_slot = 0;
  int64_t microbatches = 0;  // of both pipelines, where there are two
};

// The windows of the steps of all ranks, in any order.
class Windows {
 public:
  template <typename Steps, typename StepOf>
  Windows(const Steps& steps, const StepOf& step_of) {
    for (const auto& one : steps) Add(step_of(one));
    for (auto& [kind, slots] : slots_) std::ranges::sort(slots);
  }

  // That of so many forwards of the first stage, before the last of them but `behind`. None where
  // not all steps of a microbatch are there as often as there are microbatches: then with more of
  // them more would come behind, too.
  std::optional<Window> Find(int64_t forwards, int64_t behind) const {
    if (forwards_.empty()) return std::nullopt;
    const int64_t last = forwards_.rbegin()->first - behind;
    const auto begin = forwards_.find(last - forwards), end = forwards_.find(last);
    if (begin == forwards_.end() || end == forwards_.end()) return std::nullopt;
    Window window{.begin_slot = begin->second, .end_slot = end->second};
    for (const auto& of_kind : slots_) {
      const std::vector<int32_t>& slots = of_kind.second;
      const auto before = [&](int32_t slot) {
        return std::ranges::lower_bound(slots, slot) - slots.begin();
      };
      const int64_t inside = before(window.end_slot) - before(window.begin_slot);
      const int64_t each = std::ssize(slots) / std::ssize(microbatches_);
      if (each == 0 || inside <= 0 || inside % each != 0) return std::nullopt;
      if (window.microbatches != 0 && window.microbatches != inside / each) return std::nullopt;
      window.microbatches = inside / each;
    }
    return window;
  }

 private:
  void Add(const transforms::ScheduleStep& step) {
    microbatches_.insert(step.microbatch);
    slots_[step.kind].push_back(step.slot);
    if (step.kind == transforms::StepKind::kForward && step.stage == 0) {
      forwards_[step.microbatch] = step.slot;
    }
  }

  std::map<int64_t, int32_t> forwards_;  // of the first stage, slots by microbatch
  std::map<transforms::StepKind, std::vector<int32_t>> slots_;
  std::set<int32_t> microbatches_;
};

// Calls `find` for all that may be a period, the shortest first, until it returns something: with
// the number of forwards of the first stage, and how many come behind.
template <typename Find>
auto FirstOfPeriods(int64_t ranks, const Find& find) -> decltype(find(1, 0)) {
  for (int64_t forwards = 1; forwards <= ranks; ++forwards) {
    for (const int64_t behind : {int64_t{0}, ranks}) {
      auto found = find(forwards, behind);
      if (found.has_value()) return found;
    }
  }
  return std::nullopt;
}

// The periods of a run, by the tasks' numbers: those of a period follow each other.
class Steady {
 public:
  explicit Steady(const Run& run)
      : run_(run),
        program_(run.program),
        trace_(run.trace),
        windows_(run.steps, [](const lowering::LoweredStep& lowered) { return lowered.step; }) {
    FindBefore();
  }

  std::optional<Period> Find(int64_t forwards, int64_t behind) {
    const std::optional<Window> window = windows_.Find(forwards, behind);
    if (!window.has_value()) return std::nullopt;
    FindTasks(*window);
    if (tasks_ <= 0 || end_ - 2 * tasks_ < 0) return std::nullopt;
    // Times first: most of what is no period ends here, soon.
    period_ = Start(end_ - 1) - Start(end_ - 1 - tasks_);
    steady_ = end_;
    while (steady_ > tasks_ && IsLater(steady_ - 1)) --steady_;
    if (period_ <= Duration(0) || !ReachesSteady() || !TailFollows()) return std::nullopt;
    if (!HasSameTasks(forwards) || !KeepsMemory()) return std::nullopt;
    return Period{.microbatches = window->microbatches,
                  .time = period_,
                  .growth = growth_,
                  .begin = Id(end_ - tasks_),
                  .end = Id(end_),
                  .settled = program_.microbatch_of(Id(steady_))};
  }

 private:
  Time Start(int64_t task) const { return trace_.start[static_cast<size_t>(task)]; }
  Time Finish(int64_t task) const { return trace_.finish[static_cast<size_t>(task)]; }
  static TaskId Id(int64_t task) { return TaskId(static_cast<int32_t>(task)); }

  // Steps are in the order of their slots.
  void FindTasks(const Window& window) {
    const auto first = [this](int32_t slot) {
      return std::ranges::lower_bound(
          run_.steps, slot, {},
          [](const lowering::LoweredStep& lowered) { return lowered.step.slot; });
    };
    const auto begin = first(window.begin_slot), end = first(window.end_slot);
    end_ = tasks_ = 0;
    if (end == run_.steps.end()) return;
    end_ = end->begin.index();
    tasks_ = end_ - begin->begin.index();
  }

  // Of each task, those before it on its streams.
  void FindBefore() {
    std::vector<int64_t> last(static_cast<size_t>(program_.stream_count()), -1);
    for (int64_t task = 0; task < program_.task_count(); ++task) {
      for (const simulator::StreamId stream : program_.streams_of(Id(task))) {
        before_.push_back(std::exchange(last[static_cast<size_t>(stream.index())], task));
      }
    }
  }
  std::span<const int64_t> BeforeOnStreams(int64_t task) const {
    const size_t begin = program_.stream_offsets()[static_cast<size_t>(task)];
    return std::span(before_).subspan(begin, program_.streams_of(Id(task)).size());
  }

  // Whether the last period's tasks are those of the one before it.
  bool HasSameTasks(int64_t forwards) const {
    for (int64_t task = end_ - tasks_; task < end_; ++task) {
      const TaskId a = Id(task - tasks_), b = Id(task);
      if (program_.label_of(a) != program_.label_of(b) ||
          program_.duration(a) != program_.duration(b) ||
          program_.flow_of(a) != program_.flow_of(b) ||
          !std::ranges::equal(program_.streams_of(a), program_.streams_of(b)) ||
          program_.microbatch_of(a) + forwards != program_.microbatch_of(b)) {
        return false;
      }
      const auto shifted = [this](TaskId of_a, TaskId of_b) {
        return of_a.index() + tasks_ == of_b.index();
      };
      if (!std::ranges::equal(program_.dependencies_of(a), program_.dependencies_of(b), shifted)) {
        return false;
      }
      const auto before_a = BeforeOnStreams(task - tasks_), before_b = BeforeOnStreams(task);
      for (size_t s = 0; s < before_a.size(); ++s) {
        if (before_a[s] + tasks_ != before_b[s]) return false;
      }
    }
    return true;
  }

  // Whether events of memory are those of the period before, and what a rank holds, of any kind,
  // does not get less.
  bool KeepsMemory() {
    growth_ = decltype(growth_)(program_.rank_count());
    int64_t of_hosts = 0;
    std::vector<MemoryEvent> last, before;
    for (const MemoryEvent& event : program_.memory_events()) {
      const int64_t task = event.task.index();
      if (task >= end_ - tasks_ && task < end_) {
        last.push_back(event);
        if (event.kind == simulator::MemoryKind::kHost) {
          of_hosts += event.bytes;
        } else {
          growth_[event.rank][static_cast<size_t>(event.kind)] += Bytes(event.bytes);
        }
      } else if (task >= end_ - 2 * tasks_ && task < end_ - tasks_) {
        before.push_back(event);
      }
    }
    const auto same = [this](const MemoryEvent& a, const MemoryEvent& b) {
      return a.task.index() + tasks_ == b.task.index() && a.rank == b.rank && a.kind == b.kind &&
             a.moment == b.moment && a.bytes == b.bytes;
    };
    const auto grows = [](const auto& kinds) {
      return std::ranges::all_of(kinds, [](Bytes bytes) { return bytes >= Bytes(0); });
    };
    return of_hosts == 0 && std::ranges::equal(before, last, same) &&
           std::ranges::all_of(growth_.rows(), grows);
  }

  bool IsLater(int64_t task) const {
    return Start(task) - Start(task - tasks_) == period_ &&
           Finish(task) - Finish(task - tasks_) == period_;
  }

  // Whether all that the last period waits for is steady.
  bool ReachesSteady() const {
    bool reaches = end_ - tasks_ >= steady_;
    for (int64_t task = end_ - tasks_; task < end_ && reaches; ++task) {
      for (const TaskId on : program_.dependencies_of(Id(task))) {
        reaches = reaches && on.index() >= steady_;
      }
      for (const int64_t on : BeforeOnStreams(task)) reaches = reaches && on >= steady_;
    }
    return reaches;
  }

  // Whether what came before has ended a period before what comes behind begins, and before the
  // last period does: then these wait for nothing but what is steady, and share links with nothing
  // else.
  bool TailFollows() const {
    Time first = simulator::kEndOfTime;
    for (int64_t task = end_ - tasks_; task < end_; ++task) {
      first = std::min(first, Start(task) + period_);
    }
    for (int64_t task = end_; task < program_.task_count(); ++task) {
      first = std::min(first, Start(task));
    }
    for (int64_t task = 0; task < steady_; ++task) {
      if (Finish(task) + period_ > first) return false;
    }
    return true;
  }

  const Run& run_;
  const Program& program_;
  const simulator::Trace& trace_;
  const Windows windows_;
  int64_t end_ = 0;     // of the last period
  int64_t tasks_ = 0;   // of a period
  int64_t steady_ = 0;  // the first task that is a period later than another
  Duration period_;
  decltype(Period::growth) growth_;
  std::vector<int64_t> before_;  // by stream of a task, as Program::stream_pool
};

}  // namespace
}  // namespace skip_ahead_cc

std::optional<Period> FindPeriodOf(const Run& run, int64_t forwards, int64_t behind) {
  return skip_ahead_cc::Steady(run).Find(forwards, behind);
}

std::optional<Period> FindPeriod(const Run& run, int64_t ranks) {
  skip_ahead_cc::Steady steady(run);
  return skip_ahead_cc::FirstOfPeriods(
      ranks, [&](int64_t forwards, int64_t behind) { return steady.Find(forwards, behind); });
}

bool MayRepeat(const transforms::RankOrders& orders) {
  std::vector<transforms::ScheduleStep> steps;
  for (const auto& order : orders) steps.insert(steps.end(), order.begin(), order.end());
  const skip_ahead_cc::Windows windows(steps, std::identity());
  return skip_ahead_cc::FirstOfPeriods(
             std::ssize(orders),
             [&](int64_t forwards, int64_t behind) { return windows.Find(forwards, behind); })
      .has_value();
}

std::vector<int64_t> FewerMicrobatches(int64_t all, int64_t ranks) {
  std::vector<int64_t> fewer;
  for (const int64_t times : {3, 5, 8, 14, 24}) {
    // One rank fills at once, and is steady from its second microbatch on.
    const int64_t few = all % ranks + std::max(times * ranks, 2 * times);
    if (3 * few > 2 * all) break;
    fewer.push_back(few);
  }
  return fewer;
}

bool AddPeriods(const Skipped& skipped, Run& run) {
  const Period& period = skipped.period;
  const Duration left = simulator::kEndOfTime - run.report.step_time;
  if (period.time.picoseconds() > left.picoseconds() / std::max<int64_t>(1, skipped.times)) {
    return false;  // longer than is simulated
  }
  for (int32_t r = 0; r < run.program.rank_count(); ++r) {
    const simulator::RankClassId id(r);
    simulator::MemoryUse& peak = run.report.ranks[id].memory;
    Bytes grown;
    for (size_t kind = 0; kind < peak.by_kind.size(); ++kind) {
      const Bytes more = period.growth[id][kind] * skipped.times;
      peak.by_kind[kind] += more;
      grown += more;
    }
    if (grown == Bytes(0)) continue;
    if (!peak.task.valid() || peak.task.index() < period.begin.index()) return false;
    peak.total += grown;
  }
  simulator::Repeat(
      run.program, run.trace,
      {.begin = period.begin, .end = period.end, .time = period.time, .times = skipped.times},
      run.report);
  return true;
}

std::optional<simulator::Report> WithPeriods(const simulator::Program& program,
                                             const simulator::Report& shorter,
                                             const simulator::Report& longer, const Period& period,
                                             int64_t periods) {
  if (longer.step_time - shorter.step_time != period.time) return std::nullopt;
  if (longer.ranks.size() != shorter.ranks.size()) return std::nullopt;
  simulator::Report report = shorter;
  report.fits = true;
  const auto extend = [&](auto from, auto to) { return from + (to - from) * periods; };
  const auto number = [&](int64_t from, int64_t to) { return from + (to - from) * periods; };
  for (int32_t r = 0; r < program.rank_count(); ++r) {
    const simulator::RankClassId id(r);
    const simulator::RankReport &from = shorter.ranks[id], &to = longer.ranks[id];
    simulator::RankReport& rank = report.ranks[id];
    if (from.host_memory != to.host_memory) return std::nullopt;
    for (size_t kind = 0; kind < from.memory.by_kind.size(); ++kind) {
      const Bytes more = to.memory.by_kind[kind] - from.memory.by_kind[kind];
      if (more != period.growth[id][kind]) return std::nullopt;
      const Bytes all = Bytes(more.count() * periods);
      rank.memory.by_kind[kind] += all;
      rank.memory.total += all;
    }
    const Bytes capacity = program.rank(id).capacity;
    rank.fits = capacity == Bytes(0) || rank.memory.total <= capacity;
    report.fits = report.fits && rank.fits;
    report.peak_memory = std::max(report.peak_memory, rank.memory.total);
    for (const auto time : simulator::kRankTimes) rank.*time = extend(from.*time, to.*time);
    rank.memory.time = extend(from.memory.time, to.memory.time);
  }
  report.step_time = extend(shorter.step_time, longer.step_time);
  report.bytes_sent = Bytes(number(shorter.bytes_sent.count(), longer.bytes_sent.count()));
  report.bytes_reduced = Bytes(number(shorter.bytes_reduced.count(), longer.bytes_reduced.count()));
  report.flops = Flops(shorter.flops.count() + (longer.flops.count() - shorter.flops.count()) *
                                                   static_cast<double>(periods));
  report.simulated_tasks += longer.simulated_tasks;
  report.shares.Extend(longer.shares, periods);
  simulator::SetRatios(program, report);
  return report;
}

}  // namespace orrery::search
