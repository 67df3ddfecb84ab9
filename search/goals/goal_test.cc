#include "search/goals/goal.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

namespace orrery::search {
namespace goal_test_cc {
namespace {

constexpr Goal kGoals[] = {Goal::kTime, Goal::kThroughput, Goal::kMemory, Goal::kPrice};

GoalFigures Of(int64_t time, int64_t memory, int64_t ranks = 1) {
  return {Duration(time), Bytes(memory), ranks};
}

TEST(Goal, ReadsWhatItPrints) {
  for (const Goal goal : kGoals) EXPECT_EQ(ParseGoal(ToString(goal)).value(), goal);
  EXPECT_EQ(ParseGoal("speed").status().message(),
            "'speed': wanted throughput, time, memory or price");
}

TEST(KeyOf, ComparesWhatIsWanted) {
  EXPECT_LT(KeyOf(Goal::kTime, Of(1, 9, 9)), KeyOf(Goal::kTime, Of(2, 1, 1)));
  EXPECT_LT(KeyOf(Goal::kMemory, Of(9, 1, 9)), KeyOf(Goal::kMemory, Of(1, 2, 1)));
  EXPECT_LT(KeyOf(Goal::kMemory, Of(1, 1)), KeyOf(Goal::kMemory, Of(2, 1)));
  EXPECT_LT(KeyOf(Goal::kPrice, Of(9, 9, 1)), KeyOf(Goal::kPrice, Of(5, 1, 2)));
  EXPECT_LT(KeyOf(Goal::kPrice, Of(5, 9, 2)), KeyOf(Goal::kPrice, Of(10, 1, 1)));
}

// A product of 10^17 picoseconds and 10^6 devices has no room in 64 bits, nor in a double.
TEST(KeyOf, IsExact) {
  const int64_t long_step = 100'000'000'000'000'001;
  EXPECT_LT(KeyOf(Goal::kPrice, Of(long_step - 1, 1, 1'000'003)),
            KeyOf(Goal::kPrice, Of(long_step, 1, 1'000'003)));
}

// What pruning rests on: the key of lower bounds is a lower bound of the key.
TEST(KeyOf, OfLeastFiguresIsTheLeast) {
  std::mt19937 random(3);
  const auto draw = [&] { return static_cast<int64_t>(random() % 4); };
  for (int i = 0; i < 2000; ++i) {
    const GoalFigures least = Of(draw(), draw(), 1 + draw());
    const GoalFigures real =
        Of(least.time.picoseconds() + draw(), least.memory.count() + draw(), least.ranks);
    for (const Goal goal : kGoals) EXPECT_LE(KeyOf(goal, least), KeyOf(goal, real));
  }
}

TEST(SizeOf, IsInUnits) {
  const GoalFigures figures = Of(2'000'000'000'000, 7, 3);
  EXPECT_EQ(SizeOf(Goal::kThroughput, figures), 2);
  EXPECT_EQ(SizeOf(Goal::kMemory, figures), 7);
  EXPECT_EQ(SizeOf(Goal::kPrice, figures), 6);
}

}  // namespace
}  // namespace goal_test_cc
}  // namespace orrery::search
