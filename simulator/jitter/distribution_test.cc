#include "simulator/jitter/distribution.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "simulator/jitter/draws.h"

namespace orrery::simulator {
namespace distribution_test_cc {
namespace {

// Tables of the normal distribution: Abramowitz & Stegun, table 26.
TEST(Normal, IsInvertedOutToItsTails) {
  EXPECT_EQ(NormalExceeded(0.5), 0);
  EXPECT_NEAR(NormalExceeded(0.025), 1.959963984540054, 1e-14);
  EXPECT_NEAR(NormalExceeded(0.975), -1.959963984540054, 1e-14);
  EXPECT_NEAR(NormalExceeded(1e-3), 3.090232306167813, 1e-14);
  EXPECT_NEAR(NormalExceeded(1e-10), 6.361340902404056, 1e-13);
  EXPECT_NEAR(NormalExceeded(1e-16), 8.222082216130435, 1e-12);
  for (double z = -5; z <= 5; z += 0.25) {
    EXPECT_NEAR(NormalExceeded(std::erfc(z / std::sqrt(2.0)) / 2), z, 1e-9) << z;
  }
}

// What each record promises: a spread is a standard deviation, factors go down as the probability
// to exceed them goes up, and none is below 0.
TEST(Distributions, HaveTheirMeanAndTheirSpread) {
  for (const JitterDistribution& of : AllJitterDistributions()) {
    EXPECT_EQ(FindJitterDistribution(of.name), &of);
    const Spread spread{&of, 0.05};
    double sum = 0, squares = 0;
    constexpr int kDraws = 200'000;
    for (int i = 0; i < kDraws; ++i) {
      const double factor = spread.Factor(Draws(3, DrawFor::kRank, 0, i).Uniform());
      sum += factor;
      squares += factor * factor;
    }
    const double mean = sum / kDraws;
    EXPECT_NEAR(mean, of.mean(0.05), 0.0005) << of.name;
    EXPECT_NEAR(std::sqrt(squares / kDraws - mean * mean), 0.05, 0.0005) << of.name;
    EXPECT_NEAR(ExpectedLargest(spread, 1), of.mean(0.05), 1e-6) << of.name;
    double last = 1e9;
    for (double q = 0.0005; q < 1; q += 0.001) {
      const double factor = of.exceeded(q, of.most_spread);
      EXPECT_LE(factor, last) << of.name;
      EXPECT_GE(factor, 0) << of.name;
      last = factor;
    }
  }
  EXPECT_EQ(FindJitterDistribution("cauchy"), nullptr);
}

// Expected largest of n normal draws: Harter, Biometrika 48 (1961), table 1. Of exponential ones it
// is the harmonic number H_n, of uniform ones (n - 1) / (n + 1) of the way from the middle.
TEST(LargestOfMany, IsWhatOrderStatisticsSay) {
  const Spread normal{FindJitterDistribution("normal"), 0.01};
  const std::vector<std::pair<int64_t, double>> harter = {
      {2, 0.56419}, {5, 1.16296}, {10, 1.53875}, {50, 2.24907}, {100, 2.50759}, {400, 2.96818}};
  for (const auto& [n, deviations] : harter) {
    EXPECT_NEAR(ExpectedLargest(normal, n), 1 + 0.01 * deviations, 2e-7) << n;
  }
  const Spread exponential{FindJitterDistribution("exponential"), 0.1};
  const Spread uniform{FindJitterDistribution("uniform"), 0.1};
  double harmonic = 0;
  for (int64_t n = 1; n <= 512; ++n) {
    harmonic += 1.0 / static_cast<double>(n);
    const double place = static_cast<double>(n - 1) / static_cast<double>(n + 1);
    EXPECT_NEAR(ExpectedLargest(exponential, n), 1 + 0.1 * harmonic, 2e-6) << n;
    EXPECT_NEAR(ExpectedLargest(uniform, n), 1 + 0.1 * std::sqrt(3.0) * place, 2e-6) << n;
  }
}

// One draw of the largest is distributed as the largest of n draws is.
TEST(LargestOfMany, IsDrawnAsTheLargestOfSoManyDrawsIs) {
  for (const JitterDistribution& of : AllJitterDistributions()) {
    const Spread spread{&of, 0.1};
    constexpr int kTimes = 20'000, kOf = 16;
    std::vector<double> at_once, one_by_one;
    for (int i = 0; i < kTimes; ++i) {
      at_once.push_back(
          spread.Factor(ExceededByLargest(Draws(5, DrawFor::kStep, i, -1).Uniform(), kOf)));
      double largest = 0;
      for (int k = 0; k < kOf; ++k) {
        largest = std::max(largest, spread.Factor(Draws(5, DrawFor::kRank, i, k).Uniform()));
      }
      one_by_one.push_back(largest);
    }
    std::ranges::sort(at_once);
    std::ranges::sort(one_by_one);
    for (const double share : {0.1, 0.5, 0.9}) {
      const auto place = static_cast<size_t>(share * kTimes);
      EXPECT_NEAR(at_once[place], one_by_one[place], 0.005) << of.name << " at " << share;
    }
  }
}

}  // namespace
}  // namespace distribution_test_cc
}  // namespace orrery::simulator
