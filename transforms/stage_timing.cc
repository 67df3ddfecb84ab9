#include "transforms/stage_timing.h"

#include <algorithm>
#include <limits>

#include "support/check.h"

namespace orrery::transforms {
namespace {

constexpr double kNotYet = std::numeric_limits<double>::infinity();

class Player {
 public:
  Player(const ScheduledRanks& schedule, std::span<const StageSeconds> stages)
      : schedule_(schedule),
        stages_(stages),
        pipeline_(static_cast<int32_t>(stages.size())),
        forward_(static_cast<size_t>(schedule.shape.stages()) *
                     static_cast<size_t>(schedule.shape.microbatches),
                 kNotYet),
        backward_(forward_) {}

  double Run() {
    const auto& orders = schedule_.orders;
    std::vector<size_t> next(orders.size());
    std::vector<double> free(orders.size());
    size_t left = 0;
    for (const auto& order : orders) left += order.size();
    while (left > 0) {
      const size_t before = left;
      for (size_t rank = 0; rank < orders.size(); ++rank) {
        for (; next[rank] < orders[rank].size(); ++next[rank], --left) {
          const ScheduleStep& step = orders[rank][next[rank]];
          const double ready = Ready(step);
          if (ready == kNotYet) break;
          free[rank] = std::max(free[rank], ready) + Lasts(step);
          At(step.kind == StepKind::kForward ? forward_ : backward_, step.stage, step.microbatch) =
              step.kind == StepKind::kWeightGradient ? At(backward_, step.stage, step.microbatch)
                                                     : free[rank];
        }
      }
      ORRERY_CHECK(left < before) << "orders that deadlock";
    }
    for (int32_t stage = 0; stage < schedule_.shape.stages(); ++stage) {
      const auto rank = static_cast<size_t>(RankOf(schedule_.placement, schedule_.shape, stage));
      free[rank] += Of(stage).update;
    }
    return *std::ranges::max_element(free);
  }

 private:
  const StageSeconds& Of(int32_t stage) const {
    return stages_[static_cast<size_t>(stage % pipeline_)];
  }

  double& At(std::vector<double>& table, int32_t stage, int32_t microbatch) const {
    return table[static_cast<size_t>(stage) * static_cast<size_t>(schedule_.shape.microbatches) +
                 static_cast<size_t>(microbatch)];
  }

  double Lasts(const ScheduleStep& step) const {
    const StageSeconds& stage = Of(step.stage);
    switch (step.kind) {
      case StepKind::kForward:
        return stage.forward;
      case StepKind::kBackward:
        return stage.input_gradient + stage.weight_gradient;
      case StepKind::kInputGradient:
        return stage.input_gradient;
      case StepKind::kWeightGradient:
        return stage.weight_gradient;
    }
    return 0;
  }

  // When what the step waits for is there.
  double Ready(const ScheduleStep& step) {
    const bool first = step.stage % pipeline_ == 0;
    const bool last = step.stage % pipeline_ == pipeline_ - 1;
    if (step.kind == StepKind::kForward) {
      if (first) return 0;
      return At(forward_, step.stage - 1, step.microbatch) + Of(step.stage).receive;
    }
    if (step.kind == StepKind::kWeightGradient) return At(backward_, step.stage, step.microbatch);
    const double own = At(forward_, step.stage, step.microbatch);
    if (last) return own;
    const double later = At(backward_, step.stage + 1, step.microbatch);
    return std::max(own, later + Of(step.stage + 1).receive);
  }

  const ScheduledRanks& schedule_;
  const std::span<const StageSeconds> stages_;
  const int32_t pipeline_;                  // stages of one
  std::vector<double> forward_, backward_;  // finish of each stage and microbatch
};

}  // namespace

double StepSeconds(const ScheduledRanks& schedule, std::span<const StageSeconds> stages) {
  return Player(schedule, stages).Run();
}

}  // namespace orrery::transforms
