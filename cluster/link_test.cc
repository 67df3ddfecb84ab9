#include "cluster/link.h"

#include <gtest/gtest.h>

#include <limits>

namespace orrery::cluster {
namespace link_test_cc {
namespace {

constexpr Bandwidth kMost(std::numeric_limits<int64_t>::max());

TEST(Link, IdsPrintByName) {
  EXPECT_EQ(ToString(DeviceId(3)), "device3");
  EXPECT_EQ(ToString(VertexId(4)), "vertex4");
  EXPECT_EQ(ToString(LinkId(5)), "link5");
}

TEST(Join, TakesTheNarrowestRateAndAllLatencies) {
  const PathInfo wide = {Bandwidth(300), Duration(10)};
  const PathInfo narrow = {Bandwidth(25), Duration(7)};
  EXPECT_EQ(Join(wide, narrow), (PathInfo{Bandwidth(25), Duration(17)}));
  EXPECT_EQ(Join(narrow, wide), Join(wide, narrow));
}

TEST(Aggregate, MultipliesAndStopsAtWhatTheTypeHolds) {
  EXPECT_EQ(Aggregate(Bandwidth(25), 4), Bandwidth(100));
  EXPECT_EQ(Aggregate(Bandwidth(25), 0), Bandwidth(0));
  EXPECT_EQ(Aggregate(Bandwidth(0), int64_t{1} << 40), Bandwidth(0));
  EXPECT_EQ(Aggregate(kMost, 1), kMost);
  EXPECT_EQ(Aggregate(Bandwidth(int64_t{1} << 40), int64_t{1} << 30), kMost);
}

TEST(Sum, AddsAndStopsAtWhatTheTypeHolds) {
  EXPECT_EQ(Sum(Bandwidth(25), Bandwidth(4)), Bandwidth(29));
  EXPECT_EQ(Sum(kMost, Bandwidth(0)), kMost);
  EXPECT_EQ(Sum(kMost, Bandwidth(1)), kMost);
}

TEST(AggregateDeathTest, ThereIsNoNegativeNumberOfLinks) {
  EXPECT_DEATH(Aggregate(Bandwidth(1), -1), "-1 links");
}

}  // namespace
}  // namespace link_test_cc
}  // namespace orrery::cluster
