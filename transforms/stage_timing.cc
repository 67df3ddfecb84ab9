#include "transforms/stage_timing.h"

#include <algorithm>

#include "support/check.h"

namespace orrery::transforms {

StepTimer::StepTimer(const ScheduledRanks& schedule, int32_t stages) {
  const auto& orders = schedule.orders;
  const PipelineShape& shape = schedule.shape;
  const int32_t cells = shape.stages() * shape.microbatches;
  const auto cell = [&](bool backward, int32_t stage, int32_t microbatch) {
    return 1 + (backward ? cells : 0) + stage * shape.microbatches + microbatch;
  };
  const auto described = [&](int32_t rank, const ScheduleStep& from) {
    const bool backward = from.kind != StepKind::kForward;
    Step step{.rank = rank, .stage = from.stage % stages, .kind = from.kind};
    step.cell = cell(backward, from.stage, from.microbatch);
    if (from.kind == StepKind::kWeightGradient) {
      step.own = step.cell;
    } else if (!backward) {
      if (step.stage > 0) step.sent = cell(false, from.stage - 1, from.microbatch);
      step.sender = step.stage;
    } else {
      step.own = cell(false, from.stage, from.microbatch);
      if (step.stage + 1 < stages) step.sent = cell(true, from.stage + 1, from.microbatch);
      step.sender = std::min(step.stage + 1, stages - 1);
    }
    return step;
  };

  std::vector<char> done(static_cast<size_t>(1 + 2 * cells), 0);
  done[0] = 1;
  std::vector<size_t> next(orders.size());
  size_t left = 0;
  for (const auto& order : orders) left += order.size();
  steps_.reserve(left);
  while (left > 0) {
    const size_t before = left;
    for (size_t rank = 0; rank < orders.size(); ++rank) {
      for (; next[rank] < orders[rank].size(); ++next[rank], --left) {
        const Step step = described(static_cast<int32_t>(rank), orders[rank][next[rank]]);
        if (done[static_cast<size_t>(step.own)] == 0 || done[static_cast<size_t>(step.sent)] == 0) {
          break;
        }
        done[static_cast<size_t>(step.cell)] = 1;
        steps_.push_back(step);
      }
    }
    ORRERY_CHECK(left < before) << "orders that deadlock";
  }
  for (int32_t stage = 0; stage < shape.stages(); ++stage) {
    ranks_.push_back(RankOf(schedule.placement, shape, stage));
  }
  free_.resize(orders.size());
  finish_.resize(done.size());
}

double StepTimer::Seconds(std::span<const StageSeconds> stages) {
  std::fill(free_.begin(), free_.end(), 0.0);
  for (const Step& step : steps_) {
    const StageSeconds& stage = stages[static_cast<size_t>(step.stage)];
    double ready = finish_[static_cast<size_t>(step.own)];
    if (step.sent != 0) {
      ready = std::max(ready, finish_[static_cast<size_t>(step.sent)] +
                                  stages[static_cast<size_t>(step.sender)].receive);
    }
    double& free = free_[static_cast<size_t>(step.rank)];
    free = std::max(free, ready);
    switch (step.kind) {
      case StepKind::kForward:
        free += stage.forward;
        break;
      case StepKind::kBackward:
        free += stage.input_gradient + stage.weight_gradient;
        break;
      case StepKind::kInputGradient:
        free += stage.input_gradient;
        break;
      case StepKind::kWeightGradient:
        free += stage.weight_gradient;
        continue;  // nothing waits for it
    }
    finish_[static_cast<size_t>(step.cell)] = free;
  }
  for (size_t stage = 0; stage < ranks_.size(); ++stage) {
    free_[static_cast<size_t>(ranks_[stage])] += stages[stage % stages.size()].update;
  }
  return *std::ranges::max_element(free_);
}

double StepSeconds(const ScheduledRanks& schedule, std::span<const StageSeconds> stages) {
  return StepTimer(schedule, static_cast<int32_t>(stages.size())).Seconds(stages);
}

}  // namespace orrery::transforms
