#include "transforms/stages/placed_orders.h"

#include <algorithm>
#include <array>
#include <functional>
#include <queue>
#include <tuple>
#include <utility>

#include "ir/op_kind.h"
#include "support/check.h"

namespace orrery::transforms {
namespace placed_orders_cc {
namespace {

constexpr int64_t kNotYet = -1;

size_t At(int32_t number) { return static_cast<size_t>(number); }

std::vector<int32_t> Received(const ir::Function& function) {
  std::vector<int32_t> from;
  for (const ir::OpId op : function.order()) {
    if (function.kind(op) != ir::OpKind::kReceive) continue;
    from.push_back(static_cast<int32_t>(function.attributes(op).Int("from", 0)));
  }
  std::ranges::sort(from);
  from.erase(std::unique(from.begin(), from.end()), from.end());
  return from;
}

// A step of one stage whose inputs are there.
struct Candidate {
  int64_t start = 0;
  bool forward = true;
  int32_t microbatch = 0;
  int64_t rank = 0;  // upward
  int32_t stage = 0;

  friend bool operator>(const Candidate& a, const Candidate& b) {
    return std::tuple(a.start, a.forward, a.microbatch, -a.rank, a.stage) >
           std::tuple(b.start, b.forward, b.microbatch, -b.rank, b.stage);
  }
};

class ListOrders {
 public:
  ListOrders(const std::vector<PlacedStage>& stages, int32_t microbatches, bool forwards_first)
      : stages_(stages),
        microbatches_(At(microbatches)),
        forwards_first_(forwards_first),
        phases_{Phase(stages, microbatches), Phase(stages, microbatches)} {
    int32_t sets = 0;
    for (const PlacedStage& stage : stages) sets = std::max(sets, stage.set + 1);
    orders_.resize(At(sets));
    free_.resize(At(sets), 0);
    forwards_left_.resize(At(sets), 0);
    for (const PlacedStage& stage : stages) forwards_left_[At(stage.set)] += microbatches;
    readers_.resize(2 * stages.size());
    for (size_t s = 0; s < stages.size(); ++s) {
      for (const int32_t need : stages[s].forward_needs) readers_[At(need)].push_back(s);
      for (const int32_t need : stages[s].backward_needs) {
        readers_[stages.size() + At(need)].push_back(s);
      }
    }
    Rank();
    limits_ = MostUnderWay(stages, microbatches, forwards_first);
  }

  RankOrders Run() && {
    for (size_t s = 0; s < stages_.size(); ++s) Offer(s);
    int32_t slot = 0;
    while (!ready_.empty()) {
      Candidate next = ready_.top();
      ready_.pop();
      const int64_t free = free_[At(stages_[At(next.stage)].set)];
      if (free > next.start) {
        next.start = free;
        ready_.push(next);
      } else {
        RunStep(next, slot++);
      }
    }
    ORRERY_CHECK(slot == static_cast<int32_t>(2 * stages_.size() * microbatches_))
        << "stages of a placement wait for each other";
    return std::move(orders_);
  }

 private:
  // The forwards, or the backwards, of all stages.
  struct Phase {
    Phase(const std::vector<PlacedStage>& stages, int32_t microbatches)
        : next(stages.size(), 0),
          offered(stages.size(), 0),
          finish(stages.size() * At(microbatches), kNotYet),
          rank(stages.size(), 0) {}

    std::vector<size_t> next;     // microbatch, by stage
    std::vector<char> offered;    // whether that is among the ready ones
    std::vector<int64_t> finish;  // by stage, then microbatch
    std::vector<int64_t> rank;    // upward, by stage
  };
  Phase& PhaseOf(bool forward) { return phases_[forward ? 0 : 1]; }

  // How long it takes from the beginning of a phase to the end of the step.
  void Rank() {
    Phase &forward = PhaseOf(true), &backward = PhaseOf(false);
    for (size_t s = 0; s < stages_.size(); ++s) {
      int64_t after = 0;
      for (const size_t reader : readers_[stages_.size() + s]) {
        ORRERY_CHECK(reader < s) << "backward of stage " << reader << " before that of " << s;
        after = std::max(after, backward.rank[reader]);
      }
      backward.rank[s] = stages_[s].backward + after;
    }
    for (size_t s = stages_.size(); s-- > 0;) {
      int64_t after = backward.rank[s];
      for (const size_t reader : readers_[s]) {
        ORRERY_CHECK(reader > s) << "forward of stage " << reader << " behind that of " << s;
        after = std::max(after, forward.rank[reader]);
      }
      forward.rank[s] = stages_[s].forward + after;
    }
  }

  void Offer(size_t stage) {
    for (const bool forward : {true, false}) OfferNext(stage, forward);
  }

  // Adds the next microbatch of a phase to those that are ready, if it is.
  void OfferNext(size_t s, bool forward) {
    Phase& phase = PhaseOf(forward);
    const size_t m = phase.next[s];
    if (phase.offered[s] != 0 || m == microbatches_) return;
    const PlacedStage& stage = stages_[s];
    int64_t start = 0;
    const auto waits_for = [&](size_t on, bool of_forward) {
      const int64_t finish = PhaseOf(of_forward).finish[on * microbatches_ + m];
      start = std::max(start, finish);
      return finish == kNotYet;
    };
    if (forward) {
      const auto live = static_cast<int64_t>(m - PhaseOf(false).next[s]);
      if (live >= limits_[s]) return;
    } else if (waits_for(s, true) || (forwards_first_ && forwards_left_[At(stage.set)] > 0)) {
      return;
    }
    for (const int32_t need : forward ? stage.forward_needs : stage.backward_needs) {
      if (waits_for(At(need), forward)) return;
    }
    phase.offered[s] = 1;
    ready_.push({.start = std::max(start, free_[At(stage.set)]),
                 .forward = forward,
                 .microbatch = static_cast<int32_t>(m),
                 .rank = phase.rank[s],
                 .stage = static_cast<int32_t>(s)});
  }

  void RunStep(const Candidate& step, int32_t slot) {
    const size_t s = At(step.stage);
    const PlacedStage& stage = stages_[s];
    Phase& phase = PhaseOf(step.forward);
    const int64_t finish = step.start + (step.forward ? stage.forward : stage.backward);
    phase.finish[s * microbatches_ + At(step.microbatch)] = free_[At(stage.set)] = finish;
    phase.offered[s] = 0;
    ++phase.next[s];
    orders_[At(stage.set)].push_back(
        {.kind = step.forward ? StepKind::kForward : StepKind::kBackward,
         .stage = step.stage,
         .microbatch = step.microbatch,
         .slot = slot});
    Offer(s);
    for (const size_t reader : readers_[(step.forward ? 0 : stages_.size()) + s]) Offer(reader);
    if (!step.forward || --forwards_left_[At(stage.set)] > 0 || !forwards_first_) return;
    for (size_t other = 0; other < stages_.size(); ++other) {
      if (stages_[other].set == stage.set) Offer(other);
    }
  }

  const std::vector<PlacedStage>& stages_;
  const size_t microbatches_;
  const bool forwards_first_;
  std::array<Phase, 2> phases_;               // forward, backward
  std::vector<std::vector<size_t>> readers_;  // of each forward, then of each backward
  std::vector<int64_t> limits_;
  std::vector<int64_t> free_;           // by set: until when it is busy
  std::vector<int64_t> forwards_left_;  // by set
  std::priority_queue<Candidate, std::vector<Candidate>, std::greater<>> ready_;
  RankOrders orders_;
};

// When each step runs if each starts as early as it can. Slots ascend from what a step waits for to
// it, and forwards of a stage, or its backwards, run in the order of microbatches.
std::vector<std::vector<StepTime>> TimesOf(const std::vector<PlacedStage>& stages,
                                           const RankOrders& orders) {
  struct Place {
    size_t set = 0, position = 0;
  };
  std::vector<Place> by_slot;
  std::vector<std::vector<StepTime>> times;
  for (size_t set = 0; set < orders.size(); ++set) {
    times.emplace_back(orders[set].size());
    for (size_t i = 0; i < orders[set].size(); ++i) by_slot.push_back({set, i});
  }
  std::ranges::stable_sort(by_slot, {},
                           [&](const Place& at) { return orders[at.set][at.position].slot; });
  std::vector<std::vector<int64_t>> forwards(stages.size()), backwards(stages.size());
  for (const Place& at : by_slot) {
    const ScheduleStep& step = orders[at.set][at.position];
    const PlacedStage& stage = stages[At(step.stage)];
    const bool forward = step.kind == StepKind::kForward;
    std::vector<std::vector<int64_t>>& finish = forward ? forwards : backwards;
    int64_t start = at.position == 0 ? 0 : times[at.set][at.position - 1].finish;
    if (!forward) start = std::max(start, forwards[At(step.stage)][At(step.microbatch)]);
    for (const int32_t need : forward ? stage.forward_needs : stage.backward_needs) {
      start = std::max(start, finish[At(need)][At(step.microbatch)]);
    }
    times[at.set][at.position] = {.start = start,
                                  .finish = start + (forward ? stage.forward : stage.backward)};
    finish[At(step.stage)].push_back(times[at.set][at.position].finish);
  }
  return times;
}

int64_t Makespan(const std::vector<PlacedStage>& stages, const RankOrders& orders) {
  int64_t makespan = 0;
  for (const auto& times : TimesOf(stages, orders)) {
    if (!times.empty()) makespan = std::max(makespan, times.back().finish);
  }
  return makespan;
}

std::vector<PlacedStage> WithTimes(std::vector<PlacedStage> stages, int64_t forward,
                                   int64_t backward) {
  for (PlacedStage& stage : stages) {
    stage.forward = forward;
    stage.backward = backward;
  }
  return stages;
}

// By the times of `stages`, in slots of unit times.
RankOrders ListSchedule(const std::vector<PlacedStage>& stages, int32_t microbatches,
                        bool forwards_first) {
  RankOrders orders = ListOrders(stages, microbatches, forwards_first).Run();
  const auto times = TimesOf(WithTimes(stages, 1, 1), orders);
  for (size_t set = 0; set < orders.size(); ++set) {
    for (size_t i = 0; i < orders[set].size(); ++i) {
      orders[set][i].slot = static_cast<int32_t>(times[set][i].start);
    }
  }
  return orders;
}

}  // namespace
}  // namespace placed_orders_cc

std::vector<PlacedStage> PlacedStagesOf(const PipelinedStep& step) {
  std::vector<PlacedStage> stages;
  for (size_t s = 0; s < step.stages.size(); ++s) {
    stages.push_back(
        {.set = step.ranks[s],
         .forward_needs = placed_orders_cc::Received(step.stages[s].forward.function),
         .backward_needs = placed_orders_cc::Received(step.stages[s].backward.function)});
  }
  return stages;
}

RankOrders PlacedOrders(const std::vector<PlacedStage>& stages, int32_t microbatches,
                        bool forwards_first) {
  using placed_orders_cc::ListSchedule, placed_orders_cc::Makespan;
  RankOrders in_units =
      ListSchedule(placed_orders_cc::WithTimes(stages, 1, 1), microbatches, forwards_first);
  RankOrders by_times = ListSchedule(stages, microbatches, forwards_first);
  return Makespan(stages, by_times) < Makespan(stages, in_units) ? by_times : in_units;
}

Timing TimePlacedOrders(const std::vector<PlacedStage>& stages, const RankOrders& orders,
                        const StepDurations& durations) {
  const std::vector<PlacedStage> alike = placed_orders_cc::WithTimes(
      stages, durations.Of(StepKind::kForward), durations.Of(StepKind::kBackward));
  return TimingOf(orders, placed_orders_cc::TimesOf(alike, orders), durations);
}

std::vector<int64_t> MostUnderWay(const std::vector<PlacedStage>& stages, int64_t microbatches,
                                  bool forwards_first) {
  std::vector<int64_t> most(stages.size(), forwards_first ? microbatches : 1);
  for (size_t s = stages.size(); s-- > 0;) {
    for (const int32_t need : stages[s].forward_needs) {
      const auto on = static_cast<size_t>(need);
      most[on] = std::max(most[on], most[s] + (stages[on].set == stages[s].set ? 0 : 1));
    }
    most[s] = std::min(most[s], microbatches);
  }
  return most;
}

}  // namespace orrery::transforms
