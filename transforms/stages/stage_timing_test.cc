#include "transforms/stages/stage_timing.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <random>

#include "absl/strings/str_cat.h"
#include "transforms/schedules/orders.h"

namespace orrery::transforms {
namespace stage_timing_test_cc {
namespace {

ScheduledRanks Scheduled(const PipelineSchedule& schedule, int32_t ranks, int32_t microbatches) {
  ScheduledRanks scheduled;
  scheduled.placement = schedule.placement;
  scheduled.shape = schedule.ShapeOf(ranks, microbatches);
  scheduled.orders = schedule.OrdersOf(scheduled.shape);
  return scheduled;
}

double StepSeconds(const ScheduledRanks& scheduled, std::span<const StageSeconds> stages) {
  return StepTimer(scheduled, static_cast<int32_t>(stages.size())).Seconds(stages);
}

// Stages that are alike take what TimeOrders says, in every schedule.
TEST(StepSeconds, IsTheMakespanWhereStagesAreAlike) {
  int schedules = 0;
  for (const PipelineSchedule* schedule : AllSchedules()) {
    if (!schedule->CheckShape(schedule->ShapeOf(4, 8)).ok()) continue;
    const ScheduledRanks scheduled = Scheduled(*schedule, 4, 8);
    const StepDurations durations{.forward = 3, .input_gradient = 2, .weight_gradient = 1};
    const int64_t makespan =
        TimeOrders(scheduled.orders, scheduled.placement, scheduled.shape, durations).makespan;
    const int32_t stages = scheduled.shape.stages() / Pipelines(scheduled.placement);
    const std::vector<StageSeconds> alike(
        static_cast<size_t>(stages),
        {.forward = 3, .input_gradient = 2, .weight_gradient = 1, .update = 0, .receive = 0});
    EXPECT_DOUBLE_EQ(StepSeconds(scheduled, alike), static_cast<double>(makespan))
        << schedule->name;
    ++schedules;
  }
  EXPECT_GE(schedules, 8);
}

// GPipe: all forwards pass the slowest stage one after the other, then so do all backwards.
TEST(StepSeconds, OfGPipeIsItsClosedForm) {
  std::mt19937 random(1);
  const PipelineSchedule& gpipe = *FindSchedule("gpipe").value();
  for (int trial = 0; trial < 100; ++trial) {
    const auto draw = [&](uint32_t n) { return static_cast<int32_t>(random() % n); };
    const int32_t ranks = 1 + draw(5), microbatches = 1 + draw(6);
    std::vector<StageSeconds> stages;
    double sum = 0, slowest_forward = 0, slowest_backward = 0, sends = 0, update = 0;
    for (int32_t s = 0; s < ranks; ++s) {
      stages.push_back({.forward = 1.0 + draw(9),
                        .input_gradient = 1.0 + draw(9),
                        .weight_gradient = 1.0 * draw(4),
                        .update = 1,
                        .receive = s == 0 ? 0.0 : draw(3)});
      const StageSeconds& stage = stages.back();
      const double backward = stage.input_gradient + stage.weight_gradient;
      sum += stage.forward + backward;
      sends += 2 * stage.receive;
      slowest_forward = std::max(slowest_forward, stage.forward);
      slowest_backward = std::max(slowest_backward, backward);
      update = 1;
    }
    const double seconds = StepSeconds(Scheduled(gpipe, ranks, microbatches), stages);
    const double bound =
        sum + sends + (microbatches - 1) * (slowest_forward + slowest_backward) + update;
    // The last forward reaches the end when all have passed the slowest stage, and so back: unless
    // the last stage turns to its first backward only when its own forwards are done.
    EXPECT_DOUBLE_EQ(seconds, bound) << trial;
  }
}

// A limit changes nothing but what is beyond it.
TEST(StepSeconds, BelowALimitIsTheSameOrNothing) {
  std::mt19937 random(2);
  for (const PipelineSchedule* schedule : AllSchedules()) {
    if (!schedule->CheckShape(schedule->ShapeOf(4, 8)).ok()) continue;
    const ScheduledRanks scheduled = Scheduled(*schedule, 4, 8);
    const int32_t count = scheduled.shape.stages() / Pipelines(scheduled.placement);
    for (int trial = 0; trial < 20; ++trial) {
      const auto draw = [&] { return 0.1 + 0.1 * static_cast<double>(random() % 9); };
      std::vector<StageSeconds> stages;
      for (int32_t s = 0; s < count; ++s)
        stages.push_back({draw(), draw(), draw(), draw(), draw()});
      StepTimer timer(scheduled, count);
      const double seconds = timer.Seconds(stages);
      EXPECT_EQ(timer.SecondsBelow(seconds * 1.000001, stages), seconds) << schedule->name;
      EXPECT_EQ(timer.SecondsBelow(seconds, stages), std::numeric_limits<double>::infinity());
    }
  }
}

// The first stage finishes last: what it updates nothing hides.
TEST(StepSeconds, EndsWithTheUpdateOfTheFirstStage) {
  const ScheduledRanks scheduled = Scheduled(*FindSchedule("1f1b").value(), 2, 2);
  std::vector<StageSeconds> stages(2, {.forward = 1, .input_gradient = 2});
  EXPECT_DOUBLE_EQ(StepSeconds(scheduled, stages), 9);
  stages[1].update = 2;
  EXPECT_DOUBLE_EQ(StepSeconds(scheduled, stages), 9);
  stages[0].update = 3;
  EXPECT_DOUBLE_EQ(StepSeconds(scheduled, stages), 12);
}

}  // namespace
}  // namespace stage_timing_test_cc
}  // namespace orrery::transforms
