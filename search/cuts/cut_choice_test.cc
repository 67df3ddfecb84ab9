#include "search/cuts/cut_choice.h"

#include <gtest/gtest.h>

#include <random>
#include <vector>

namespace orrery::search {
namespace cut_choice_test_cc {
namespace {

PlayedCut Cut(int64_t time, int64_t peak, bool fits = true) {
  return {.fits = fits, .time = Duration(time), .peak = Bytes(peak)};
}

TEST(TakenCut, IsTheLeanestOfThoseAboutAsFast) {
  EXPECT_EQ(TakenCut(std::vector<PlayedCut>{Cut(1000, 10), Cut(1005, 8), Cut(1008, 12)}), 1u);
  EXPECT_EQ(TakenCut(std::vector<PlayedCut>{Cut(1000, 10), Cut(1100, 8), Cut(1200, 8)}), 0u);
}

// What another beats in both is not taken because the last one is faster than a leaner one.
TEST(TakenCut, IsNoSlowerThanTheLast) {
  EXPECT_EQ(TakenCut(std::vector<PlayedCut>{Cut(1000, 10), Cut(1005, 8), Cut(1003, 12)}), 0u);
  EXPECT_EQ(TakenCut(std::vector<PlayedCut>{Cut(1000, 10), Cut(1005, 8), Cut(1003, 9)}), 2u);
}

TEST(TakenCut, FitsWhereOneDoes) {
  EXPECT_EQ(TakenCut(std::vector<PlayedCut>{Cut(10, 10, false), Cut(1005, 8), Cut(9, 9, false)}),
            1u);
}

TEST(TakenCut, NeedsLeastWhereNoneFits) {
  EXPECT_EQ(TakenCut(std::vector<PlayedCut>{Cut(10, 10, false), Cut(12, 8, false)}), 1u);
}

TEST(TakenCut, IsBeatenInBothByNone) {
  std::mt19937 random(1);
  const auto draw = [&random](unsigned most) { return static_cast<int64_t>(random() % most); };
  for (int trial = 0; trial < 2000; ++trial) {
    std::vector<PlayedCut> cuts;
    for (int i = 0; i < 4; ++i) {
      const int64_t time = 1000 + draw(20);
      const int64_t peak = draw(10);
      cuts.push_back(Cut(time, peak, draw(4) != 0));
    }
    const PlayedCut taken = cuts[TakenCut(cuts)];
    for (const PlayedCut& other : cuts) {
      EXPECT_FALSE(other.fits &&
                   (!taken.fits || (other.time < taken.time && other.peak < taken.peak)));
    }
  }
}

}  // namespace
}  // namespace cut_choice_test_cc
}  // namespace orrery::search
