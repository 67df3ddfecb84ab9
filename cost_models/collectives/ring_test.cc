#include <gtest/gtest.h>

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "cost_models/collectives/collective_algorithm.h"

namespace orrery::cost_models {
namespace {

// A byte takes 1000 ps, a step 7 ps more.
constexpr cluster::PathInfo kPath = {Bandwidth(1'000'000'000), Duration(7)};

const CollectiveAlgorithm& Ring() {
  const auto algorithms = AllCollectiveAlgorithms();
  return **std::find_if(algorithms.begin(), algorithms.end(),
                        [](const CollectiveAlgorithm* a) { return a->name == "ring"; });
}

int64_t Picoseconds(CollectiveKind kind, int64_t size, int64_t ranks) {
  return Ring()
      .time({.kind = kind, .size = Bytes(size), .ranks = ranks, .ring = kPath})
      .picoseconds();
}

TEST(Ring, OfTwoRanks) {
  EXPECT_EQ(Picoseconds(CollectiveKind::kAllReduce, 100, 2), 2 * (50'000 + 7));
  EXPECT_EQ(Picoseconds(CollectiveKind::kAllGather, 100, 2), 50'000 + 7);
}

TEST(Ring, OfFourRanks) {
  EXPECT_EQ(Picoseconds(CollectiveKind::kAllReduce, 100, 4), 6 * (25'000 + 7));
  EXPECT_EQ(Picoseconds(CollectiveKind::kAllGather, 100, 4), 3 * (25'000 + 7));
}

TEST(Ring, OfNothingTakesItsLatencies) {
  EXPECT_EQ(Picoseconds(CollectiveKind::kAllReduce, 0, 4), 6 * 7);
}

// Two thirds of a byte an all-gather of 1 byte: 666.67 ps, of which the last is begun.
TEST(Ring, RoundsOnceUp) {
  EXPECT_EQ(Picoseconds(CollectiveKind::kAllGather, 1, 3), 667 + 2 * 7);
  EXPECT_EQ(Picoseconds(CollectiveKind::kAllReduce, 1, 3), 1334 + 4 * 7);
}

// Step by step, where size/n is whole: each rank sends a part and waits for one.
TEST(Ring, IsAsManyStepsAsItSays) {
  for (int64_t ranks = 2; ranks <= 64; ++ranks) {
    SCOPED_TRACE(absl::StrCat(ranks, " ranks"));
    const int64_t part = 1000, step = part * 1000 + 7;
    EXPECT_EQ(Picoseconds(CollectiveKind::kAllReduce, part * ranks, ranks), 2 * (ranks - 1) * step);
    EXPECT_EQ(Picoseconds(CollectiveKind::kAllGather, part * ranks, ranks), (ranks - 1) * step);
  }
}

TEST(Ring, AllReduceIsTwoAllGathersToWithinRounding) {
  for (int64_t ranks = 2; ranks <= 64; ++ranks) {
    const int64_t once = Picoseconds(CollectiveKind::kAllGather, 12'345, ranks);
    const int64_t twice = Picoseconds(CollectiveKind::kAllReduce, 12'345, ranks);
    EXPECT_LE(twice, 2 * once) << ranks;
    EXPECT_GE(twice, 2 * once - 1) << ranks;
  }
}

}  // namespace
}  // namespace orrery::cost_models
