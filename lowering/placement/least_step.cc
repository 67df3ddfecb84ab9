#include "lowering/placement/least_step.h"

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "lowering/blocks/host_work.h"
#include "lowering/placement/least_span.h"

namespace orrery::lowering {
namespace least_step_cc {
namespace {

using transforms::StepKind;

bool IsOnComputeStream(const TemplateTask& task) {
  return task.stream == simulator::StreamKind::kCompute;
}

// How a rank's memory changes while a phase runs. Kernels run in their order; of other tasks those
// that a kernel waits for have ended by then, and for the rest nobody knows.
class PhaseMemory {
 public:
  explicit PhaseMemory(const TaskTemplate& of) : of_(of), waited_(of.tasks.size(), 0) {
    for (const TemplateMemory& memory : of.memory) {
      if (memory.kind == simulator::MemoryKind::kHost) continue;
      const bool on_stream = IsOnComputeStream(TaskOf(memory));
      if (memory.bytes < 0 && !on_stream) now_ += Give(memory);
      events_.push_back(&memory);
    }
    std::ranges::stable_sort(events_, {}, [](const TemplateMemory* event) { return event->task; });
    most_ = now_;
    for (size_t t = 0; t < of.tasks.size(); ++t) {
      if (IsOnComputeStream(of.tasks[t])) RunKernel(static_cast<int32_t>(t));
    }
  }

  // Bytes at the moment that has most, and in the end, of the first microbatch.
  int64_t most() const { return most_; }
  int64_t left() const { return now_; }
  // By how much more each one leaves than that before it; of these what is given back.
  int64_t growth() const { return growth_; }
  int64_t given_growth() const { return given_growth_; }
  // Whether kernels have waited for the input.
  bool awaits(int32_t input) const { return inputs_.contains(input); }

 private:
  const TemplateTask& TaskOf(const TemplateMemory& memory) const {
    return of_.tasks[static_cast<size_t>(memory.task)];
  }

  int64_t Give(const TemplateMemory& memory) {
    if (memory.growth != MemoryGrowth::kNone) {
      growth_ += memory.bytes;
      given_growth_ += std::min<int64_t>(0, memory.bytes);
    }
    return memory.BytesIn(0);
  }

  static bool AtStart(const TemplateMemory& memory) {
    using simulator::MemoryMoment;
    return memory.moment == MemoryMoment::kBySign ? memory.bytes > 0
                                                  : memory.moment == MemoryMoment::kStart;
  }

  template <typename F>
  void ForEventsOf(int32_t task, F f) {
    const auto task_of = [](const TemplateMemory* event) { return event->task; };
    for (auto at = std::ranges::lower_bound(events_, task, {}, task_of);
         at != events_.end() && (*at)->task == task; ++at) {
      f(**at);
    }
  }

  // What other tasks have taken before `task` may begin.
  void WaitFor(int32_t task) {
    for (const TemplateDependency& on : of_.DependenciesOf(of_.tasks[static_cast<size_t>(task)])) {
      if (on.external) {
        inputs_.insert(on.index);
        continue;
      }
      char& waited = waited_[static_cast<size_t>(on.index)];
      if (std::exchange(waited, 1) != 0) continue;
      if (IsOnComputeStream(of_.tasks[static_cast<size_t>(on.index)])) continue;
      ForEventsOf(on.index, [&](const TemplateMemory& event) {
        if (event.bytes > 0) now_ += Give(event);
      });
      WaitFor(on.index);
    }
  }

  void RunKernel(int32_t task) {
    WaitFor(task);
    const auto take = [&](bool at_start) {
      ForEventsOf(task, [&](const TemplateMemory& event) {
        if (AtStart(event) == at_start) now_ += Give(event);
      });
      most_ = std::max(most_, now_);
    };
    take(true);
    take(false);
  }

  const TaskTemplate& of_;
  std::vector<const TemplateMemory*> events_;  // by task
  std::vector<char> waited_;
  absl::flat_hash_set<int32_t> inputs_;
  int64_t now_ = 0, most_ = 0, growth_ = 0, given_growth_ = 0;
};

// Bytes that a rank has more than before a phase: at a moment while it runs, and afterwards.
struct Change {
  int64_t most = 0, left = 0;  // for the first microbatch
  int64_t growth = 0, given_growth = 0;

  int64_t MostIn(int64_t microbatch) const { return most + given_growth * microbatch; }
  int64_t LeftBy(int64_t microbatch) const { return left + growth * microbatch; }
};

// A phase of a stage: of its first microbatch, and of the others.
struct Phase {
  Change first, later;
};

struct Peaks {
  int64_t least = 0, likely = 0;
};

// Walks through what each rank does.
class PeakWalk {
 public:
  explicit PeakWalk(const FoldedStep& step) : step_(step), received_(step.stages.size()) {
    for (size_t s = 0; s < step.stages.size(); ++s) FindReceived(static_cast<int32_t>(s));
    for (size_t s = 0; s < step.stages.size(); ++s) {
      const Stage& stage = step.stages[s];
      forward_.push_back(PhaseOf(stage.forward, static_cast<int32_t>(s)));
      backward_.push_back(PhaseOf(stage.backward, static_cast<int32_t>(s)));
      weights_.push_back(PhaseOf(stage.weights, static_cast<int32_t>(s)));
    }
  }

  // Of a rank that holds so much all the time: what it surely has at one moment, and what it is
  // likely to have, with the end of the step, of which gradients may go early.
  Peaks PeaksOf(const std::vector<transforms::ScheduleStep>& order, int64_t resident) const {
    Count forwards(step_.stages.size()), backwards = forwards, weights = forwards;
    Peaks peaks{.least = resident, .likely = resident};
    int64_t now = resident;
    bool sure = true;
    const auto run = [&](const std::vector<Phase>& phases, Count& counts, size_t s) {
      const int64_t number = counts.by_stage[s]++;
      const bool first = number == 0 || step_.repetitions.always_first();
      const Change& change = first ? phases[s].first : phases[s].later;
      const int64_t most = now + change.MostIn(number);
      now += change.LeftBy(number);
      peaks.likely = std::max({peaks.likely, most, now});
      if (sure) peaks.least = std::max({peaks.least, most, now});
    };
    for (const transforms::ScheduleStep& step : order) {
      const auto s = static_cast<size_t>(step.stage);
      if (step.kind == StepKind::kForward) {
        run(forward_, forwards, s);
        continue;
      }
      const Count& done = step.kind == StepKind::kWeightGradient ? weights : backwards;
      sure = sure && done.by_stage[s] + 1 < step_.repetitions.microbatches;
      if (step.kind != StepKind::kWeightGradient) run(backward_, backwards, s);
      if (step.kind != StepKind::kInputGradient) run(weights_, weights, s);
    }
    return peaks;
  }

 private:
  struct Count {
    explicit Count(size_t stages) : by_stage(stages, 0) {}
    std::vector<int64_t> by_stage;
  };

  // What comes from other ranks is there before what waits for it.
  void FindReceived(int32_t s) {
    const Stage& stage = step_.stages[static_cast<size_t>(s)];
    for (const PhaseTemplates* phase : {&stage.forward, &stage.backward, &stage.weights}) {
      for (const TemplateSend& send : phase->first.task_template.sends) {
        if (!step_.geometry.Travels(s, send.to) || !send.across.messages.empty()) continue;
        received_[static_cast<size_t>(send.to)].emplace(send.origin, send.bytes.count());
      }
    }
  }

  // What it gives back once it is sent may be gone.
  Change ChangeBy(const PricedTemplate& priced, int32_t s) const {
    const TaskTemplate& of = priced.task_template;
    const PhaseMemory memory(of);
    int64_t moved = 0;
    for (const TemplateSend& send : of.sends) {
      if (send.freed && step_.geometry.Travels(s, send.to)) moved -= send.bytes.count();
    }
    Change change{.most = memory.most() + moved,
                  .growth = memory.growth(),
                  .given_growth = memory.given_growth()};
    const auto& received = received_[static_cast<size_t>(s)];
    for (size_t i = 0; i < of.inputs.size(); ++i) {
      const auto found = received.find(of.inputs[i].origin);
      const bool comes = of.inputs[i].received && found != received.end();
      if (comes && memory.awaits(static_cast<int32_t>(i))) moved += found->second;
    }
    change.left = memory.left() + moved;
    return change;
  }

  Phase PhaseOf(const PhaseTemplates& templates, int32_t s) const {
    return {.first = ChangeBy(templates.first, s), .later = ChangeBy(templates.later, s)};
  }

  const FoldedStep& step_;
  std::vector<absl::flat_hash_map<ir::ValueId, int64_t>> received_;  // by stage: bytes by origin
  std::vector<Phase> forward_, backward_, weights_;                  // by stage
};

}  // namespace
}  // namespace least_step_cc

TimesOfStep TimesOf(const FoldedStep& step) {
  struct OfRank {
    Duration busy, one;  // all of a step, and of a microbatch
  };
  IdTable<simulator::RankClassId, OfRank> ranks(step.program.rank_count());
  Duration one_of_all;
  for (const Stage& stage : step.stages) {
    OfRank& rank = ranks[stage.actors.front().rank];
    for (const PhaseTemplates* phase : {&stage.forward, &stage.backward, &stage.weights}) {
      const Duration all = LeastSpan(*phase, step.repetitions.microbatches, step.program);
      const Duration one = LeastSpan(phase->usual(), step.program);
      rank.busy = SaturatedSum(rank.busy, all);
      rank.one = SaturatedSum(rank.one, one);
      one_of_all = SaturatedSum(one_of_all, one);
    }
    rank.busy = SaturatedSum(rank.busy, LeastSpan(stage.update, step.program));
  }
  TimesOfStep times;
  Duration longest;
  for (int32_t r = 0; r < step.program.rank_count(); ++r) {
    const OfRank& rank = ranks[simulator::RankClassId(r)];
    times.least = std::max(times.least, rank.busy);
    longest = std::max(longest, rank.one);
  }
  const int64_t chunks = std::max(1, step.geometry.stages() / step.geometry.positions());
  const Duration bubble((one_of_all - longest).picoseconds() / chunks);
  times.likely = SaturatedSum(times.least, bubble);
  return times;
}

IdTable<simulator::RankClassId, PeakBound> BoundPeaks(const FoldedStep& step,
                                                      const transforms::RankOrders& orders) {
  using simulator::RankClassId;
  IdTable<RankClassId, PeakBound> peaks(step.program.rank_count());
  for (int32_t rank = 0; rank < step.program.rank_count(); ++rank) {
    PeakBound& peak = peaks[RankClassId(rank)];
    for (int kind = 0; kind < simulator::kMemoryKindCount; ++kind) {
      peak.resident +=
          step.program.resident(RankClassId(rank), static_cast<simulator::MemoryKind>(kind));
    }
    peak.least = peak.likely = peak.resident;
  }
  std::vector<RankClassId> ranks(orders.size());  // by position
  for (int32_t s = 0; s < step.geometry.stages(); ++s) {
    const auto position = static_cast<size_t>(step.geometry.position_of(s));
    if (position < ranks.size()) {
      ranks[position] = step.stages[static_cast<size_t>(s)].actors.front().rank;
    }
  }
  const least_step_cc::PeakWalk walk(step);
  for (size_t position = 0; position < ranks.size(); ++position) {
    if (!ranks[position].valid()) continue;
    PeakBound& peak = peaks[ranks[position]];
    const auto [least, likely] = walk.PeaksOf(orders[position], peak.resident.count());
    peak.least = Bytes(least);
    peak.likely = Bytes(likely);
  }
  return peaks;
}

namespace least_step_cc {
namespace {

// Seconds on all streams.
struct Activity {
  double communicating = 0, computing = 0;

  void Add(const Activity& by, int64_t times) {
    communicating += by.communicating * static_cast<double>(times);
    computing += by.computing * static_cast<double>(times);
  }
};

Activity ActivityOf(const PricedTemplate& priced, const simulator::Program& program) {
  Activity activity;
  for (size_t t = 0; t < priced.task_template.tasks.size(); ++t) {
    const TemplateTask& task = priced.task_template.tasks[t];
    if (IsHostStream(task.stream)) continue;
    const double seconds = TimeAlone(priced, t, program).seconds();
    const bool communicates = !task.group.empty();
    (communicates ? activity.communicating : activity.computing) += seconds;
    for (const simulator::StretchPart& part : program.parts_of(task.label)) {
      activity.communicating += part.total.seconds();
      activity.computing -= part.exposed.seconds();
    }
  }
  for (const TaskTime& send : priced.sends) {  // of two ranks
    activity.communicating += 2 * TimeAlone(send, program).seconds();
  }
  return activity;
}

}  // namespace
}  // namespace least_step_cc

double CommunicationShare(const FoldedStep& step) {
  using least_step_cc::ActivityOf;
  least_step_cc::Activity all;
  for (const Stage& stage : step.stages) {
    for (const PhaseTemplates* phase : {&stage.forward, &stage.backward, &stage.weights}) {
      all.Add(ActivityOf(phase->first, step.program), 1);
      all.Add(ActivityOf(phase->usual(), step.program), step.repetitions.microbatches - 1);
    }
    all.Add(ActivityOf(stage.update, step.program), 1);
  }
  const double busy = all.communicating + all.computing;
  return busy > 0 ? all.communicating / busy : 0;
}

}  // namespace orrery::lowering
