#include "simulator/parameter_server/arithmetic.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "simulator/jitter/distribution.h"
#include "simulator/parameter_server/kernel_times.h"
#include "simulator/parameter_server/star_test_util.h"

namespace orrery::simulator::parameter_server {
namespace arithmetic_test_cc {
namespace {

// Four workers of 10 ms, two servers of 1 GB/s that share two keys of 3 MB: 6 MB x 4 / 2 GB/s.
Training Small() {
  return MakeTraining({.workers = 4, .servers = 2, .server_memory = 3'000'000'000},
                      {{Milliseconds(2), Milliseconds(3), Bytes(3'000'000)},
                       {Milliseconds(2), Milliseconds(3), Bytes(3'000'000)}});
}

TEST(Arithmetic, OfABulkStep) {
  const Arithmetic of = ArithmeticOf(Small());
  EXPECT_DOUBLE_EQ(of.compute_s, 0.010);
  EXPECT_DOUBLE_EQ(of.push_s, 0.012);
  EXPECT_DOUBLE_EQ(of.pull_s, 0.012);
  EXPECT_DOUBLE_EQ(of.link_s, 0.012);  // each way by itself
  // Three sums of 9 MB and an update of 3 + 2 x 3 MB, at 3 GB/s.
  EXPECT_DOUBLE_EQ(of.server_s, 0.012);
  EXPECT_DOUBLE_EQ(of.least_s(), 0.012);
  EXPECT_DOUBLE_EQ(of.sum_s(), 0.046);
}

TEST(Arithmetic, ASlowWorkerSetsThePaceOfABulkStepAndOfABound) {
  Training training = Small();
  training.disturbances.slow = {{.rank = 1, .factor = 2}};
  EXPECT_DOUBLE_EQ(ArithmeticOf(training).compute_s, 0.020);
  training.policy.sync = Sync::kAsync;
  // Three of 100 steps a second and one of 50; servers make 4 / 12 ms = 333.
  EXPECT_NEAR(ArithmeticOf(training).most_rate, 333.33, 0.01);
  training.rates.assign(2, Bandwidth(0));
  for (int32_t s = 0; s < 2; ++s) training.parts[static_cast<size_t>(s)].gradient = Bytes(3'000);
  for (Part& part : training.parts) part.parameter = Bytes(3'000);
  EXPECT_NEAR(ArithmeticOf(training).most_rate, 350, 1e-9);
  training.policy.sync = Sync::kStale;
  EXPECT_NEAR(ArithmeticOf(training).most_rate, 200, 1e-9);
}

// Faster ones than usual, too, and those of which the device is.
TEST(Arithmetic, KnowsWhatLasts) {
  Training training = Small();
  for (int32_t w = 0; w < 4; ++w) training.disturbances.slow.push_back({.rank = w, .factor = 0.5});
  EXPECT_DOUBLE_EQ(ArithmeticOf(training).compute_s, 0.005);
  training.disturbances = {};
  training.disturbances.device = Spread{FindJitterDistribution("uniform"), 0.5};
  const std::vector<double> factors = LastingFactors(training);
  EXPECT_DOUBLE_EQ(ArithmeticOf(training).compute_s, 0.010 * *std::ranges::max_element(factors));
  EXPECT_NE(factors[0], factors[1]);
}

TEST(Arithmetic, ServersOnTheHostsOfWorkersLoadTheirCardsTwice) {
  const Training training = MakeTraining({.workers = 2, .servers = 2, .colocated = true},
                                         {{Milliseconds(1), Milliseconds(1), Bytes(1'000'000)},
                                          {Milliseconds(1), Milliseconds(1), Bytes(1'000'000)}});
  const Arithmetic of = ArithmeticOf(training);
  EXPECT_DOUBLE_EQ(of.push_s, 0.001);
  EXPECT_DOUBLE_EQ(of.link_s, 0.002);  // 2 (n - 1) / n of 2 MB, as a ring has it
}

}  // namespace
}  // namespace arithmetic_test_cc
}  // namespace orrery::simulator::parameter_server
