#include "transforms/stages/stage_timing.h"

#include <algorithm>
#include <limits>

#include "transforms/schedules/step_player.h"

namespace orrery::transforms {
namespace stage_timing_cc {
namespace {

// By slot, how many steps are in those before it; behind the last slot, how many there are.
std::vector<size_t> PositionsBySlot(const RankOrders& orders) {
  std::vector<size_t> begins;
  for (const auto& order : orders) {
    for (const ScheduleStep& step : order) {
      const auto slot = static_cast<size_t>(step.slot);
      if (begins.size() < slot + 2) begins.resize(std::max(slot + 2, 2 * begins.size()), 0);
      ++begins[slot + 1];
    }
  }
  for (size_t slot = 1; slot < begins.size(); ++slot) begins[slot] += begins[slot - 1];
  return begins;
}

}  // namespace
}  // namespace stage_timing_cc

size_t StepCount(const ScheduledRanks& schedule) {
  size_t steps = 0;
  for (const auto& order : schedule.orders) steps += order.size();
  return steps;
}

StepTimer::StepTimer(const ScheduledRanks& schedule, int32_t stages) : stages_(stages) {
  const PipelineShape& shape = schedule.shape;
  const StepNeeds needs(schedule.placement, shape);
  const auto cell = [&](const ScheduleStep& step) {
    const int32_t row = 2 * step.stage + (step.kind == StepKind::kForward ? 0 : 1);
    return 1 + row * shape.microbatches + step.microbatch;
  };
  // Slots have what a step waits for before it.
  std::vector<size_t> position = stage_timing_cc::PositionsBySlot(schedule.orders);
  steps_.resize(position.empty() ? 0 : position.back());
  counts_.resize(static_cast<size_t>(shape.stages()));
  for (const auto& order : schedule.orders) {
    for (const ScheduleStep& from : order) {
      StageSteps& counts = counts_[static_cast<size_t>(from.stage)];
      const bool whole = from.kind == StepKind::kBackward;
      if (from.kind == StepKind::kForward) ++counts.forwards;
      if (from.kind == StepKind::kInputGradient || whole) ++counts.input_gradients;
      if (from.kind == StepKind::kWeightGradient || whole) ++counts.weight_gradients;
      Step step{.rank = RankOf(schedule.placement, shape, from.stage),
                .stage = from.stage % stages,
                .kind = from.kind,
                .cell = cell(from)};
      for (const ScheduleStep& need : needs.Of(from)) {
        (need.stage == from.stage ? step.own : step.sent) = cell(need);
        if (need.stage != from.stage) step.sender = std::max(from.stage, need.stage) % stages;
      }
      steps_[position[static_cast<size_t>(from.slot)]++] = step;
    }
  }
  for (int32_t stage = 0; stage < shape.stages(); ++stage) {
    ranks_.push_back(RankOf(schedule.placement, shape, stage));
  }
  free_.resize(schedule.orders.size());
  end_.resize(schedule.orders.size());
  finish_.resize(static_cast<size_t>(1 + 2 * shape.stages() * shape.microbatches));
}

void StepTimer::FindEnds(std::span<const StageSeconds> stages) {
  std::fill(end_.begin(), end_.end(), 0.0);
  for (size_t s = 0; s < counts_.size(); ++s) {
    const StageSeconds& stage = stages[s % stages.size()];
    end_[static_cast<size_t>(ranks_[s])] +=
        counts_[s].forwards * stage.forward + counts_[s].input_gradients * stage.input_gradient +
        counts_[s].weight_gradients * stage.weight_gradient + stage.update;
  }
}

double StepTimer::SecondsBelow(double limit, std::span<const StageSeconds> stages) {
  constexpr double kNever = std::numeric_limits<double>::infinity();
  constexpr double kRounding = 1e-12;  // sums here and below are taken in another order
  const double hopeless = limit * (1 + kRounding);
  FindEnds(stages);
  if (std::ranges::max(end_) >= hopeless) return kNever;
  std::fill(free_.begin(), free_.end(), 0.0);
  for (const Step& step : steps_) {
    const StageSeconds& stage = stages[static_cast<size_t>(step.stage)];
    double ready = finish_[static_cast<size_t>(step.own)];
    if (step.sent != 0) {
      ready = std::max(ready, finish_[static_cast<size_t>(step.sent)] +
                                  stages[static_cast<size_t>(step.sender)].receive);
    }
    double& free = free_[static_cast<size_t>(step.rank)];
    if (ready > free) {
      double& end = end_[static_cast<size_t>(step.rank)];
      end += ready - free;
      if (end >= hopeless) return kNever;
      free = ready;
    }
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
  const double last = std::ranges::max(free_);
  return last < limit ? last : kNever;
}

}  // namespace orrery::transforms
