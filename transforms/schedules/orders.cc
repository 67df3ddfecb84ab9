#include "transforms/schedules/orders.h"

#include <algorithm>
#include <utility>

#include "support/check.h"
#include "transforms/schedules/step_player.h"
#include "transforms/schedules/text.h"

namespace orrery::transforms {
namespace orders_cc {
namespace {

void CheckStepsAreOfShape(const RankOrders& orders, const PipelineShape& shape) {
  ORRERY_CHECK(orders.size() == static_cast<size_t>(shape.ranks)) << orders.size() << " ranks";
  for (const auto& order : orders) {
    for (const ScheduleStep& step : order) {
      ORRERY_CHECK(step.microbatch >= 0 && step.microbatch < shape.microbatches) << StepName(step);
      ORRERY_CHECK(step.stage >= 0 && step.stage < shape.stages()) << StepName(step);
    }
  }
}

}  // namespace
}  // namespace orders_cc

void AssignSlots(RankOrders& orders, StagePlacement placement, const PipelineShape& shape) {
  orders_cc::CheckStepsAreOfShape(orders, shape);
  const StepPlayer player(orders, placement, shape, {.pairs_wait = true});
  ORRERY_CHECK(player.Deadlock().empty()) << "deadlock: " << player.Deadlock();
  for (size_t rank = 0; rank < orders.size(); ++rank) {
    for (size_t i = 0; i < orders[rank].size(); ++i) {
      orders[rank][i].slot = static_cast<int32_t>(player.times()[rank][i].start);
    }
  }
}

void JoinParts(RankOrders& orders, StagePlacement placement, const PipelineShape& shape) {
  ORRERY_CHECK(orders.size() == 1) << orders.size() << " ranks";
  std::vector<ScheduleStep>& order = orders[0];
  const auto is_rest = [](const ScheduleStep& step) {
    return step.kind == StepKind::kWeightGradient;
  };
  if (std::erase_if(order, is_rest) == 0) return;
  for (ScheduleStep& step : order) {
    if (step.kind == StepKind::kInputGradient) step.kind = StepKind::kBackward;
  }
  AssignSlots(orders, placement, shape);
}

Timing TimeOrders(const RankOrders& orders, StagePlacement placement, const PipelineShape& shape,
                  const StepDurations& durations) {
  orders_cc::CheckStepsAreOfShape(orders, shape);
  StepLengths lengths = {.send = durations.send};
  for (size_t kind = 0; kind < lengths.of_kind.size(); ++kind) {
    lengths.of_kind[kind] = durations.Of(static_cast<StepKind>(kind));
  }
  const StepPlayer player(orders, placement, shape, lengths);
  ORRERY_CHECK(player.Deadlock().empty()) << "deadlock: " << player.Deadlock();
  return TimingOf(orders, player.times(), durations);
}

Timing TimingOf(const RankOrders& orders, std::vector<std::vector<StepTime>> steps,
                const StepDurations& durations) {
  Timing timing;
  timing.steps = std::move(steps);
  for (const auto& times : timing.steps) {
    if (!times.empty()) timing.makespan = std::max(timing.makespan, times.back().finish);
  }
  for (size_t rank = 0; rank < orders.size(); ++rank) {
    int64_t busy = 0;
    for (const ScheduleStep& step : orders[rank]) busy += durations.Of(step.kind);
    const auto& times = timing.steps[rank];
    const int64_t span = times.empty() ? 0 : times.back().finish - times.front().start;
    timing.idle.push_back(timing.makespan - busy);
    timing.idle_inside.push_back(span - busy);
  }
  return timing;
}

int64_t PeakLive(std::span<const ScheduleStep> order) {
  int64_t live = 0;
  int64_t peak = 0;
  for (const ScheduleStep& step : order) {
    if (step.kind == StepKind::kInputGradient) continue;
    live += step.kind == StepKind::kForward ? 1 : -1;
    peak = std::max(peak, live);
  }
  return peak;
}

std::vector<int32_t> Staleness(const RankOrders& orders, int32_t stages,
                               int32_t microbatches_an_update) {
  struct Stage {
    int32_t backwards = 0;
    std::vector<int32_t> updates_before;  // the forward of each microbatch
  };
  std::vector<Stage> of_stage(static_cast<size_t>(stages));
  std::vector<int32_t> stalest(of_stage.size(), 0);
  for (const auto& order : orders) {
    for (const ScheduleStep& step : order) {
      Stage& stage = of_stage[static_cast<size_t>(step.stage)];
      const auto microbatch = static_cast<size_t>(step.microbatch);
      if (step.kind == StepKind::kForward) {
        if (stage.updates_before.size() <= microbatch) stage.updates_before.resize(microbatch + 1);
        stage.updates_before[microbatch] = stage.backwards / microbatches_an_update;
      } else if (step.kind != StepKind::kInputGradient) {
        const int32_t update = stage.backwards++ / microbatches_an_update;
        int32_t& most = stalest[static_cast<size_t>(step.stage)];
        most = std::max(most, update - stage.updates_before[microbatch]);
      }
    }
  }
  return stalest;
}

}  // namespace orrery::transforms
