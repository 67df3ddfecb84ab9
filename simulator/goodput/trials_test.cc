#include "simulator/goodput/trials.h"

#include <gtest/gtest.h>

#include <cmath>

namespace orrery::simulator::goodput {
namespace trials_test_cc {
namespace {

RunSpec Usual() {
  return {.job = {.hosts = 64},
          .length_s = 1e6,
          .step_s = 10,
          .failures = {{&AllComponents()[0], 64 * 8 * 7200}},
          .tiers = {{.name = "pfs", .every_steps = 60, .stall_s = 20}},
          .recovery = {.detect = {60, 600}, .restart = {120, 120}}};
}

TEST(Trials, AreTheSameOnAnyNumberOfThreads) {
  const RunSpec spec = Usual();
  const std::vector<TrialResult> alone = PlayTrials(spec, 700, {.seed = 4});
  for (const size_t threads : {2u, 5u}) {
    const std::vector<TrialResult> together =
        PlayTrials(spec, 700, {.seed = 4, .threads = threads});
    ASSERT_EQ(together.size(), alone.size());
    for (size_t i = 0; i < alone.size(); ++i) {
      EXPECT_EQ(together[i].trained_s, alone[i].trained_s);
      EXPECT_EQ(together[i].failures, alone[i].failures);
    }
  }
}

TEST(Trials, EndWithWhatIsDoneWhenTheyAreToStop) {
  const std::atomic<bool> stop = true;
  const std::vector<TrialResult> some =
      PlayTrials(Usual(), 10'000, {.seed = 4, .threads = 2, .stop = &stop});
  ASSERT_EQ(some.size(), 1u);
  EXPECT_EQ(some[0].trained_s, PlayTrials(Usual(), 1, {.seed = 4})[0].trained_s);
}

TEST(Trials, SpreadingIsThatOfTheValues) {
  const Spreading one = SpreadingOf({0.5});
  EXPECT_EQ(one.mean, 0.5);
  EXPECT_EQ(one.ci95, 0);
  EXPECT_EQ(one.p5, 0.5);
  const Spreading five = SpreadingOf({5, 1, 4, 2, 3});
  EXPECT_DOUBLE_EQ(five.mean, 3);
  EXPECT_DOUBLE_EQ(five.p50, 3);
  EXPECT_DOUBLE_EQ(five.p5, 1.2);
  EXPECT_DOUBLE_EQ(five.p95, 4.8);
  // Student's t of 4 degrees of freedom is 2.776.
  EXPECT_NEAR(five.ci95, 2.776 * std::sqrt(2.5 / 5), 0.02);
}

// Of 19 of 20 seeds, the interval holds the mean of very many runs.
TEST(Trials, ConfidenceIsWhatItSays) {
  RunSpec spec = Usual();
  spec.length_s = 2e5;
  const double mean =
      Summarize(spec, PlayTrials(spec, 20'000, {.seed = 1'000'000, .threads = 2})).goodput.mean;
  int inside = 0;
  constexpr int kSeeds = 200;
  for (int seed = 0; seed < kSeeds; ++seed) {
    const Spreading goodput =
        Summarize(spec, PlayTrials(spec, 30, {.seed = static_cast<uint64_t>(seed)})).goodput;
    if (std::abs(goodput.mean - mean) <= goodput.ci95) ++inside;
  }
  EXPECT_GT(inside, 0.90 * kSeeds);
  EXPECT_LT(inside, 0.99 * kSeeds);
}

}  // namespace
}  // namespace trials_test_cc
}  // namespace orrery::simulator::goodput
