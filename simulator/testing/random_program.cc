#include "simulator/testing/random_program.h"

#include <algorithm>
#include <random>
#include <vector>

#include "absl/strings/str_cat.h"

namespace orrery::simulator {
namespace random_program_cc {
namespace {

struct Draft {
  std::vector<StreamId> streams;
  std::vector<size_t> after;
  Task task;
};

class Generator {
 public:
  explicit Generator(const RandomProgramOptions& options)
      : options_(options), random_(options.seed) {}

  Program Make() {
    AddRanks();
    for (int i = 0; i < 4; ++i) AddLabel(i);
    for (int32_t i = 0; i < options_.tasks; ++i) drafts_.push_back(MakeDraft(drafts_.size()));
    AddTasks(options_.ordered ? InOrder() : Shuffled());
    AddMemory();
    return std::move(program_);
  }

 private:
  size_t Below(size_t count) { return random_() % count; }
  bool OneIn(size_t count) { return Below(count) == 0; }

  void AddRanks() {
    for (int32_t i = 0; i < options_.ranks; ++i) {
      const RankClassId rank = program_.AddRank({.name = absl::StrCat("pp", i),
                                                 .members = {3 * i, 3 * i + 1},
                                                 .stage = i,
                                                 .capacity = Bytes(i % 2 == 0 ? 0 : 5000),
                                                 .communication_slowdown = SlowDownOf(i)});
      program_.AddResident(rank, MemoryKind::kParameters, Bytes(100 * i));
      const int kinds = options_.one_stream ? 1 : kStreamKindCount;
      for (int kind = 0; kind < kinds; kind += 2) {
        program_.AddStream(rank, static_cast<StreamKind>(kind));
      }
    }
  }

  double SlowDownOf(int32_t rank) const {
    static constexpr double kSlowDowns[] = {1.0 / 3, 0.5, 0, 0.999};
    return options_.slow_down ? kSlowDowns[rank % 4] : 0;
  }

  void AddLabel(int i) {
    program_.AddLabel({.name = absl::StrCat("op \"", i, "\""),
                       .kind = static_cast<TaskKind>(i % kTaskKindCount),
                       .phase = static_cast<Phase>(Below(kPhaseCount)),
                       .stage = i,
                       .flops = Flops(static_cast<double>(Below(1000)) / 7),
                       .bytes = Bytes(static_cast<int64_t>(Below(5000))),
                       .collectives = i,
                       .communication = i == 1 ? "all-reduce \"dp\"" : "",
                       .level = i > 1 ? "nic" : ""});
  }

  Draft MakeDraft(size_t index) {
    Draft draft;
    const size_t participants = OneIn(3) ? 1 + Below(3) : 1;
    while (draft.streams.size() < participants) {
      const StreamId stream(
          static_cast<int32_t>(Below(static_cast<size_t>(program_.stream_count()))));
      const auto found = std::find(draft.streams.begin(), draft.streams.end(), stream);
      if (found != draft.streams.end()) break;
      draft.streams.push_back(stream);
    }
    for (size_t i = Below(4); i > 0 && index > 0; --i) draft.after.push_back(Below(index));
    draft.task.duration = Duration(OneIn(8) ? 0 : static_cast<int64_t>(Below(20)));
    draft.task.label = LabelId(static_cast<int32_t>(Below(4)));
    draft.task.microbatch = static_cast<int32_t>(Below(5)) - 1;
    if (options_.flows && OneIn(4)) {
      draft.task.flow = program_.AddFlow({.size = Bytes(static_cast<int64_t>(Below(100))),
                                          .rate = Bandwidth(1'000'000'000'000),
                                          .latency = Duration(static_cast<int64_t>(Below(5)))});
      draft.task.duration = Duration(0);
    }
    return draft;
  }

  std::vector<size_t> InOrder() const {
    std::vector<size_t> order(drafts_.size());
    for (size_t i = 0; i < order.size(); ++i) order[i] = i;
    return order;
  }

  // Another order that keeps that of each stream, and forgets the dependencies.
  std::vector<size_t> Shuffled() {
    std::vector<size_t> order;
    std::vector<bool> taken(drafts_.size());
    while (order.size() < drafts_.size()) {
      const size_t draft = Below(drafts_.size());
      if (taken[draft] || SharesStreamWithEarlier(draft, taken)) continue;
      taken[draft] = true;
      order.push_back(draft);
    }
    return order;
  }

  bool SharesStreamWithEarlier(size_t draft, const std::vector<bool>& taken) const {
    for (size_t before = 0; before < draft; ++before) {
      if (taken[before]) continue;
      for (const StreamId stream : drafts_[before].streams) {
        const std::vector<StreamId>& streams = drafts_[draft].streams;
        if (std::find(streams.begin(), streams.end(), stream) != streams.end()) return true;
      }
    }
    return false;
  }

  void AddTasks(const std::vector<size_t>& order) {
    std::vector<int32_t> id_of(order.size());
    for (size_t i = 0; i < order.size(); ++i) id_of[order[i]] = static_cast<int32_t>(i);
    for (const size_t i : order) {
      std::vector<TaskId> after;
      for (const size_t before : drafts_[i].after) after.emplace_back(id_of[before]);
      program_.AddRendezvous(drafts_[i].streams, drafts_[i].task, after);
    }
  }

  void AddMemory() {
    for (int32_t i = 0; i < program_.task_count(); ++i) {
      const RankClassId rank = program_.stream(program_.streams_of(TaskId(i)).front()).rank;
      for (size_t events = Below(3); events > 0; --events) {
        const int64_t bytes = static_cast<int64_t>(Below(2000)) - 1000;
        const auto kind = static_cast<MemoryKind>(Below(kMemoryKindCount));
        const auto moment = static_cast<MemoryMoment>(Below(3));
        program_.AddMemoryEvent({.task = TaskId(i),
                                 .rank = rank,
                                 .kind = kind,
                                 .moment = bytes == 0 ? MemoryMoment::kBySign : moment,
                                 .bytes = bytes});
      }
    }
  }

  RandomProgramOptions options_;
  std::mt19937 random_;
  Program program_;
  std::vector<Draft> drafts_;
};

bool ShareStream(const Program& program, TaskId a, TaskId b) {
  for (const StreamId stream : program.streams_of(a)) {
    const std::span<const StreamId> others = program.streams_of(b);
    if (std::find(others.begin(), others.end(), stream) != others.end()) return true;
  }
  return false;
}

Time EarliestStart(const Program& program, const Trace& trace, int32_t task) {
  Time start;
  for (int32_t before = 0; before < task; ++before) {
    if (!ShareStream(program, TaskId(before), TaskId(task))) continue;
    start = std::max(start, trace.finish_of(TaskId(before)));
  }
  for (const TaskId before : program.dependencies_of(TaskId(task))) {
    start = std::max(start, trace.finish_of(before));
  }
  return start;
}

}  // namespace
}  // namespace random_program_cc

Program RandomProgram(const RandomProgramOptions& options) {
  return random_program_cc::Generator(options).Make();
}

Trace RunByRelaxation(const Program& program) {
  const size_t count = static_cast<size_t>(program.task_count());
  Trace trace{std::vector<Time>(count), std::vector<Time>(count), Time()};
  bool changed = true;
  while (changed) {
    changed = false;
    for (size_t task = 0; task < count; ++task) {
      const TaskId id(static_cast<int32_t>(task));
      const Time start = random_program_cc::EarliestStart(program, trace, id.index());
      const Time finish = start + program.duration(id);
      changed |= start != trace.start[task] || finish != trace.finish[task];
      trace.start[task] = start;
      trace.finish[task] = finish;
      trace.makespan = std::max(trace.makespan, finish);
    }
  }
  return trace;
}

}  // namespace orrery::simulator
