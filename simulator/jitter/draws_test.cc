#include "simulator/jitter/draws.h"

#include <gtest/gtest.h>

#include <cmath>
#include <set>

namespace orrery::simulator {
namespace draws_test_cc {
namespace {

// The numbers themselves: they may never change, nor differ from machine to machine.
TEST(Draws, AreTheSameEverywhere) {
  EXPECT_EQ(Draws(1, DrawFor::kRank, 0, 0).Uniform(), Draws(1, DrawFor::kRank, 0, 0).Uniform());
  EXPECT_EQ(Draws(1, DrawFor::kRank, 0, 0).Uniform(), 0x1.b9689ab4d5584p-3);
  EXPECT_EQ(Draws(7, DrawFor::kKernel, 3, 5).Uniform(11), 0x1.9dbcd08d4f32ep-2);
}

TEST(Draws, DifferWithAllThatTheyAreFor) {
  std::set<double> seen;
  for (const uint64_t seed : {0u, 1u, 2u}) {
    for (const DrawFor purpose : {DrawFor::kKernel, DrawFor::kStep, DrawFor::kPause}) {
      for (const int32_t step : {-1, 0, 1}) {
        for (const int32_t rank : {-1, 0, 1}) {
          const Draws draws(seed, purpose, step, rank);
          for (const int64_t index : {0, 1, 2}) seen.insert(draws.Uniform(index));
        }
      }
    }
  }
  EXPECT_EQ(seen.size(), 3 * 3 * 3 * 3 * 3);
}

// Of 10^5 numbers the mean is off by 1 / sqrt(12 · 10^5) = 0.0009, neighbours do not go together.
TEST(Draws, AreEvenAndIndependent) {
  constexpr int kDraws = 100'000;
  double sum = 0, squares = 0, along_index = 0, along_rank = 0, before = 0.5, rank_before = 0.5;
  for (int i = 0; i < kDraws; ++i) {
    const double u = Draws(1, DrawFor::kKernel, 0, 0).Uniform(i);
    const double v = Draws(1, DrawFor::kRank, 0, i).Uniform();
    ASSERT_GT(u, 0);
    ASSERT_LT(u, 1);
    sum += u;
    squares += u * u;
    along_index += (u - 0.5) * (before - 0.5);
    along_rank += (v - 0.5) * (rank_before - 0.5);
    before = u;
    rank_before = v;
  }
  EXPECT_NEAR(sum / kDraws, 0.5, 0.004);
  EXPECT_NEAR(squares / kDraws, 1.0 / 3, 0.004);
  EXPECT_NEAR(along_index / kDraws, 0, 0.002);
  EXPECT_NEAR(along_rank / kDraws, 0, 0.002);
}

}  // namespace
}  // namespace draws_test_cc
}  // namespace orrery::simulator
