#ifndef ORRERY_TRANSFORMS_SCHEDULES_STEP_PLAYER_H_
#define ORRERY_TRANSFORMS_SCHEDULES_STEP_PLAYER_H_

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "transforms/schedules/orders.h"
#include "transforms/schedules/schedule.h"

// What a step waits for, and with it when each step runs.

namespace orrery::transforms {

/// What steps wait for, a few a step; kinds are kForward, or kInputGradient for whatever makes the
/// gradient of the stage's input.
class StepNeeds {
 public:
  StepNeeds(StagePlacement placement, const PipelineShape& shape);

  struct Needs {
    std::array<ScheduleStep, 2> steps;
    int count = 0;

    const ScheduleStep* begin() const { return steps.data(); }
    const ScheduleStep* end() const { return steps.data() + count; }
  };
  /// What the step waits for besides its rank. Requires a step of the shape.
  Needs Of(const ScheduleStep& step) const;

 private:
  int32_t depth_;  // stages of one pipeline
};

/// What is needed, as the orders have it: for kInputGradient that may be a B.
ScheduleStep AsOrdered(const RankOrders& orders, const ScheduleStep& need);

/// A table of every step that there can be, by what it makes: B has the entry of I, as either
/// makes the gradient of the stage's input.
template <typename T>
class StepTable {
 public:
  StepTable(const PipelineShape& shape, T fill)
      : microbatches_(static_cast<size_t>(shape.microbatches)),
        entries_(3 * static_cast<size_t>(shape.stages()) * microbatches_, fill) {}

  T& operator[](const ScheduleStep& step) { return entries_[IndexOf(step)]; }
  const T& operator[](const ScheduleStep& step) const { return entries_[IndexOf(step)]; }

 private:
  size_t IndexOf(const ScheduleStep& step) const {
    size_t row = 3 * static_cast<size_t>(step.stage);
    if (step.kind == StepKind::kWeightGradient) {
      row += 2;
    } else if (step.kind != StepKind::kForward) {
      row += 1;
    }
    return row * microbatches_ + static_cast<size_t>(step.microbatch);
  }

  size_t microbatches_;
  std::vector<T> entries_;
};

/// How long steps of each kind last, by number of the kind, and a send from rank to rank.
struct StepLengths {
  std::array<int64_t, 4> of_kind = {1, 1, 1, 1};
  int64_t send = 0;
  /// Steps that run at once start when what both wait for is there.
  bool pairs_wait = false;
};

/// Plays orders, each step as early as it can, as far as they go.
class StepPlayer {
 public:
  /// Requires steps of the shape, on as many ranks.
  StepPlayer(const RankOrders& orders, StagePlacement placement, const PipelineShape& shape,
             const StepLengths& lengths);

  /// When each step ran; of those that could not, nonsense.
  const std::vector<std::vector<StepTime>>& times() const { return times_; }

  /// "rank 0 waits in 0B0 for 1B0; rank 1 waits in 1F1 for 0F1" of the ranks that wait for each
  /// other; empty when all steps ran.
  std::string Deadlock() const;

 private:
  struct Blocked {
    ScheduleStep step;
    ScheduleStep need;
  };
  /// The first step of the rank that has not run and what it waits for.
  std::optional<Blocked> BlockedOn(size_t rank) const;
  /// From when on a step of the rank can run, as far as what it waits for goes; nothing while that
  /// has not run.
  std::optional<int64_t> ReadyAt(size_t rank, const ScheduleStep& step) const;
  /// The step that has to be ready with the one at `position` of the rank's order; null: none.
  const ScheduleStep* PartnerOf(size_t rank, size_t position) const;
  /// When the next step of the rank can start, or nothing while it must wait.
  std::optional<int64_t> StartOfNext(size_t rank) const;
  /// Runs the rank until it must wait; returns whether it got on.
  bool Run(size_t rank);

  const RankOrders& orders_;
  const StagePlacement placement_;
  const PipelineShape shape_;
  const StepLengths lengths_;
  const StepNeeds needs_;
  StepTable<int64_t> finish_;
  std::vector<std::vector<StepTime>> times_;
  std::vector<size_t> next_;
  std::vector<int64_t> free_;
};

}  // namespace orrery::transforms

#endif  // ORRERY_TRANSFORMS_SCHEDULES_STEP_PLAYER_H_
