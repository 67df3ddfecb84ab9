#ifndef ORRERY_TRANSFORMS_SCHEDULES_ORDER_JUDGE_H_
#define ORRERY_TRANSFORMS_SCHEDULES_ORDER_JUDGE_H_

#include <array>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "transforms/schedules/building_block.h"
#include "transforms/schedules/list_scheduler.h"
#include "transforms/schedules/schedule.h"

// Which of two orders is better, and whether any can be.

namespace orrery::transforms {

/// F, I and W of a transformer: those of golden/schedules.json.
inline constexpr StepDurations kTransformerDurations = {
    .forward = 10, .input_gradient = 12, .weight_gradient = 8};

/// Further durations under which orders should do well when nobody says how long steps last.
inline constexpr std::array kOtherDurations = {
    StepDurations{.forward = 10, .input_gradient = 20, .weight_gradient = 10},
    StepDurations{.forward = 10, .input_gradient = 8, .weight_gradient = 12},
    StepDurations{.forward = 10, .input_gradient = 15, .weight_gradient = 5},
    StepDurations{.forward = 10, .input_gradient = 10, .weight_gradient = 20},
    StepDurations{.forward = 10, .input_gradient = 12, .weight_gradient = 8, .send = 3},
};

/// The smaller the better, the first that differs decides.
struct OrderScore {
  int64_t makespan = 0;
  /// Where steps all last the same, as nobody knows better, the makespan if they were a
  /// transformer's; else 0.
  int64_t transformer_makespan = 0;
  bool has_gaps = false;  // whether any rank is idle between its first step and its last
  /// Where steps all last the same, all makespans under kOtherDurations.
  int64_t other_makespans = 0;
  int64_t idle_inside = 0;  // of all ranks, between the first step of each and its last
  int64_t live = 0;         // the most of each rank, added up

  auto operator<=>(const OrderScore&) const = default;
};

class OrderJudge {
 public:
  /// Durations of the average step, as PipelineShape has them.
  OrderJudge(const BlockPipeline& pipeline, const StepDurations& durations);

  /// Of steps each of which comes after those that it waits for. May stop at the first number
  /// that is greater than that of `best`: the score is right as far as it must be to compare them.
  OrderScore Score(const std::vector<PlayedStep>& steps, const OrderScore& best);

  /// A makespan that no orders within the limits fall short of, under these durations.
  int64_t LowerBound(const StepDurations& durations) const;

  /// Whether the makespans are at their bounds.
  bool IsShortest(const OrderScore& score) const;
  bool AllLastTheSame() const { return all_last_the_same_; }

 private:
  struct RankPlay {
    int64_t start = -1;
    int64_t free = 0;
    int64_t busy = 0;
    int64_t live = 0;
    int64_t most_live = 0;
  };

  size_t IndexOf(size_t stage, const PlayedStep& step) const;
  int64_t Ready(const PlayedStep& step, int64_t send) const;
  int64_t Play(const std::vector<PlayedStep>& steps, const StepDurations& durations);

  const BlockPipeline pipeline_;
  const StepDurations durations_;
  const bool all_last_the_same_;
  std::vector<int64_t> forward_, backward_;  // finish, by stage and microbatch
  std::vector<RankPlay> ranks_;
};

}  // namespace orrery::transforms

#endif  // ORRERY_TRANSFORMS_SCHEDULES_ORDER_JUDGE_H_
