#include "transforms/schedules/steady_bubble.h"

#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"

namespace orrery::transforms {
namespace steady_bubble_test_cc {
namespace {

std::optional<double> Bubble(absl::string_view name, int32_t ranks, StepDurations durations,
                             int64_t live_limit = 0) {
  const PipelineSchedule& schedule = **FindSchedule(name);
  EXPECT_TRUE(schedule.asynchronous);
  PipelineShape shape = schedule.ShapeOf(ranks, 1);
  shape.durations = durations;
  shape.live_limit = live_limit;
  return SteadyBubble(schedule, shape);
}

TEST(SteadyBubble, IsNoneWhereSendsTakeNoTime) {
  for (const absl::string_view name : {"pipedream", "pipedream-2bw", "pipemare", "ampnet"}) {
    for (const int32_t ranks : {1, 2, 3, 4, 7, 16}) {
      for (const StepDurations& durations :
           {StepDurations{}, StepDurations{.forward = 3, .input_gradient = 5, .weight_gradient = 2},
            StepDurations{.forward = 7, .input_gradient = 1, .weight_gradient = 0}}) {
        EXPECT_EQ(Bubble(name, ranks, durations), 0.0) << name << " on " << ranks;
      }
    }
  }
}

// A microbatch takes p (F + B) and 2 (p - 1) sends to come back; as many are under way as fill the
// pipeline without sends, so that the sends are what ranks wait for.
TEST(SteadyBubble, OfOneForwardOneBackwardIsTheSends) {
  for (const int32_t ranks : {2, 4, 8}) {
    for (const int64_t send : {1, 2, 10}) {
      const int64_t waits = 2 * (ranks - 1) * send, work = int64_t{ranks} * 3;
      EXPECT_DOUBLE_EQ(*Bubble("pipedream", ranks, {.send = send}),
                       static_cast<double>(waits) / static_cast<double>(waits + work))
          << ranks << " ranks, sends of " << send;
    }
  }
}

// Twice as many under way hide sends until these take as long as the steps.
TEST(SteadyBubble, OfAmpnetIsOfTheMicrobatchesUnderWay) {
  EXPECT_EQ(*Bubble("ampnet", 4, {.send = 1}), 0.0);
  EXPECT_DOUBLE_EQ(*Bubble("ampnet", 4, {.send = 2}), 1 - 24.0 / 28);
  EXPECT_DOUBLE_EQ(*Bubble("ampnet", 4, {.send = 0}, 2), 0.5);
  EXPECT_DOUBLE_EQ(*Bubble("ampnet", 4, {.send = 2}, 1), 21.0 / 24);
}

TEST(SteadyBubble, IsNotToldOfPipelinesWithTooManySteps) {
  EXPECT_EQ(Bubble("pipedream", 5000, {}), std::nullopt);
  EXPECT_EQ(Bubble("pipedream", 100, {}), 0.0);
}

}  // namespace
}  // namespace steady_bubble_test_cc
}  // namespace orrery::transforms
