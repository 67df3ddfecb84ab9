#include "simulator/parameter_server/meters.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "simulator/parameter_server/outcome.h"
#include "simulator/parameter_server/star_test_util.h"

namespace orrery::simulator::parameter_server {
namespace meters_test_cc {
namespace {

using testing::ElementsAre;

Time At(double milliseconds) { return Milliseconds(milliseconds); }

// A wait from 10 to 20 is dealt out to what came to pass meanwhile; what was over before has none.
TEST(Meters, AWaitIsDealtOutToItsCauses) {
  Meters meters(1);
  meters.Waited(0, At(10), At(20), {.pushed = At(12), .gathered = At(15), .released = At(16)});
  meters.Waited(0, At(30), At(40), {.pushed = At(1), .gathered = At(2), .released = At(33)});
  const Outcome outcome = std::move(meters).Tell(At(50));
  EXPECT_THAT(outcome.workers[0].waits, ElementsAre(At(2), At(3), At(4), At(11)));
  EXPECT_EQ(outcome.workers[0].waiting(), At(20));
}

// What was before it does not count; a step that ends at that moment is where the first begins.
TEST(Meters, FiguresAreOfTheTimeSinceWarm) {
  Meters meters(2);
  meters.Computed(0, At(0), At(10));
  meters.Finished(0, 0, At(10));
  meters.Finished(1, 0, At(8));
  meters.Warm(At(10));
  meters.Computed(0, At(5), At(14));
  for (const double end : {20, 30, 40}) meters.Finished(0, 1, At(end));
  for (const double end : {15, 35}) meters.Finished(1, 1, At(end));
  const Outcome outcome = std::move(meters).Tell(At(40));
  EXPECT_EQ(outcome.workers[0].computing, At(4));
  EXPECT_DOUBLE_EQ(outcome.workers[0].rate, 100);  // 3 steps in 30 ms
  EXPECT_DOUBLE_EQ(outcome.workers[1].rate, 50);   // one from 15 to 35
  EXPECT_DOUBLE_EQ(outcome.rate(), 150);
  EXPECT_THAT(outcome.step_times, ElementsAre(At(10), At(10), At(10), At(20)));
  EXPECT_EQ(outcome.workers[0].steps, 4);
}

// The most of a step's parameters, of its own step alone.
TEST(Meters, ALagIsOfTheStepThatReads) {
  Meters meters(1);
  meters.Lacks(0, 1, 2);
  meters.Lacks(0, 1, 1);
  meters.Finished(0, 0, At(1));
  meters.Lacks(0, 2, 1);
  meters.Finished(0, 1, At(2));
  meters.Finished(0, 2, At(3));
  EXPECT_THAT(std::move(meters).Tell(At(3)).lags, ElementsAre(1, 1, 1));
}

TEST(Meters, DelaysAndDropsAreByBytes) {
  Meters meters(1);
  meters.Delayed(3, 10);
  meters.Delayed(0, 20);
  meters.Came(75, false);
  meters.Came(25, true);
  const Outcome outcome = std::move(meters).Tell(At(1));
  EXPECT_DOUBLE_EQ(outcome.mean_delay, 1);
  EXPECT_EQ(outcome.most_delay, 3);
  EXPECT_DOUBLE_EQ(outcome.dropped, 0.25);
}

}  // namespace
}  // namespace meters_test_cc
}  // namespace orrery::simulator::parameter_server
