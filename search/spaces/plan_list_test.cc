#include "search/spaces/plan_list.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <vector>

#include "search/spaces/space_test_util.h"

namespace orrery::search {
namespace plan_list_test_cc {
namespace {

using transforms::ParallelPlan;

ParallelPlan Drawn(std::mt19937& random) {
  ParallelPlan plan;
  plan.dp = int64_t{1} << random() % 3;
  plan.pp = int64_t{1} << random() % 3;
  plan.microbatches = 1 + random() % 3;
  plan.zero = random() % 2;
  plan.blocking = random() % 2 == 0;
  if (random() % 4 == 0) plan.order = transforms::MeshOrder("pp,hp,dp");
  if (random() % 4 == 0) plan.recompute = transforms::ParseRecomputePolicy("full").value();
  return plan;
}

// The same as a vector without what it has twice.
TEST(PlanList, HasEachPlanOnceInItsOrder) {
  std::mt19937 random(7);
  PlanList list;
  std::vector<ParallelPlan> expected;
  for (int i = 0; i < 2000; ++i) {
    const ParallelPlan plan = Drawn(random);
    const bool is_new = std::ranges::find(expected, plan) == expected.end();
    if (is_new) expected.push_back(plan);
    ASSERT_EQ(list.Insert(plan), is_new) << ToString(plan);
  }
  ASSERT_GT(expected.size(), 100u);
  EXPECT_EQ(list.All(), expected);
  EXPECT_EQ(list.size(), expected.size());
  PlanList moved = std::move(list);
  EXPECT_FALSE(moved.Insert(expected.back()));
  EXPECT_EQ(moved[17], expected[17]);
  EXPECT_EQ(moved.front(), expected.front());
  EXPECT_EQ(moved.back(), expected.back());
}

TEST(PlanList, OfNoPlansIsEmpty) {
  const PlanList list;
  EXPECT_TRUE(list.empty());
  EXPECT_TRUE(list.All().empty());
}

// Of dp x pp = 4 and two stages of ZeRO.
TEST(PlanList, NeighboursDifferInLittle) {
  PlanList list;
  for (const int64_t dp : {1, 2, 4}) {
    for (const int64_t microbatches : {2, 4, 8}) {
      for (const int64_t zero : {0, 1}) {
        list.Insert({.dp = dp, .pp = 4 / dp, .microbatches = microbatches, .zero = zero});
      }
    }
  }
  const ParallelPlan from = {.dp = 2, .pp = 2, .microbatches = 4, .zero = 0};
  std::vector<ParallelPlan> found;
  const std::vector<ParallelPlan> all = list.All();
  const auto at = std::ranges::find(all, from) - all.begin();
  for (const size_t i : list.Neighbours(static_cast<size_t>(at))) found.push_back(all[i]);
  EXPECT_THAT(found, testing::UnorderedElementsAre(
                         // As many microbatches, or as many samples in each.
                         ParallelPlan{.dp = 1, .pp = 4, .microbatches = 4},
                         ParallelPlan{.dp = 1, .pp = 4, .microbatches = 8},
                         ParallelPlan{.dp = 4, .pp = 1, .microbatches = 4},
                         ParallelPlan{.dp = 4, .pp = 1, .microbatches = 2},
                         ParallelPlan{.dp = 2, .pp = 2, .microbatches = 2},
                         ParallelPlan{.dp = 2, .pp = 2, .microbatches = 8},
                         ParallelPlan{.dp = 2, .pp = 2, .microbatches = 4, .zero = 1}));
}

TEST(PlanList, FamiliesHaveTheSameDegrees) {
  PlanList list;
  list.Insert({.dp = 2, .pp = 1, .microbatches = 1});
  list.Insert({.dp = 2, .pp = 1, .microbatches = 4, .zero = 3});
  list.Insert({.dp = 1, .pp = 2, .microbatches = 1});
  EXPECT_EQ(list.FamilyOf(0), list.FamilyOf(1));
  EXPECT_NE(list.FamilyOf(0), list.FamilyOf(2));
}

// Each once, whatever lists number its values; a value that nobody had is as plain as it is called.
TEST(PlanList, TakesThoseOfOthers) {
  PlanList list;
  list.CallPlain({.zero = 3});
  list.Insert({.dp = 2});
  list.Insert({.dp = 4, .zero = 1});
  PlanList others;
  others.Insert({.dp = 8, .zero = 3});
  others.Insert({.dp = 4, .zero = 1});
  others.Insert({.dp = 2, .zero = 1});
  list.InsertAll(others, 10);
  ASSERT_EQ(list.size(), 4u);
  EXPECT_EQ(list[2], others[0]);
  EXPECT_EQ(list[3], others[2]);
  EXPECT_EQ(list.ChangesOf(2), 0);
  EXPECT_EQ(list.ChangesOf(3), 1);
  EXPECT_FALSE(list.Insert({.dp = 8, .zero = 3}));
  list.InsertAll(PlanList(), 10);
  others.Insert({.dp = 16});
  others.Insert({.dp = 32});
  list.InsertAll(others, 5);
  ASSERT_EQ(list.size(), 5u);
  EXPECT_EQ(list.back().dp, 16);
}

TEST(PlanList, CountsChangesBesideDegreesAndMicrobatches) {
  PlanList list;
  list.Insert({.dp = 2, .microbatches = 1});
  list.Insert({.dp = 1, .pp = 2, .microbatches = 4});
  list.Insert({.dp = 2, .microbatches = 4, .schedule = "gpipe", .zero = 3});
  EXPECT_EQ(list.ChangesOf(0), 0);
  EXPECT_EQ(list.ChangesOf(1), 0);
  EXPECT_EQ(list.ChangesOf(2), 2);
  list.Insert({.dp = 1, .cp = 2, .microbatches = 1});
  EXPECT_EQ(list.ChangesOf(0), 0);
  EXPECT_EQ(list.ChangesOf(3), 1);
  PlanList plain;
  plain.CallPlain({.schedule = "gpipe"});
  plain.Insert({.dp = 2, .microbatches = 1});
  plain.Insert({.dp = 2, .microbatches = 4, .schedule = "gpipe", .zero = 3});
  plain.Insert({.dp = 2, .microbatches = 4, .schedule = "interleaved"});
  EXPECT_EQ(plain.ChangesOf(0), 0);
  EXPECT_EQ(plain.ChangesOf(1), 1);
  EXPECT_EQ(plain.ChangesOf(2), 1);
}

// As many of each; numbers by their logarithm, other values each by itself; what does not vary
// says nothing.
TEST(PlanList, HasFeaturesOfWhatVaries) {
  PlanList list;
  for (const int64_t dp : {1, 3, 7}) {
    for (const char* schedule : {"1f1b", "gpipe"}) {
      list.Insert({.dp = dp, .schedule = transforms::ScheduleChoice::Parse(schedule).value()});
    }
  }
  EXPECT_THAT(list.FeaturesOf(0), testing::ElementsAre(1, 1, 0));
  EXPECT_THAT(list.FeaturesOf(1), testing::ElementsAre(1, 0, 1));
  EXPECT_THAT(list.FeaturesOf(2), testing::ElementsAre(2, 1, 0));
  EXPECT_THAT(list.FeaturesOf(5), testing::ElementsAre(3, 0, 1));
}

TEST(PlanList, LeavesOutAxesOfChanges) {
  PlanList list;
  for (const int64_t zero : {0, 1}) list.Insert({.dp = 2, .zero = zero});
  EXPECT_EQ(list.ChangesOf(1), 1);
  constexpr absl::string_view kBesides[] = {"zero"};
  EXPECT_EQ(list.ChangesOf(1, kBesides), 0);
}

TEST(PlansView, SeesListsVectorsAndPlacesOfOthers) {
  const std::vector<ParallelPlan> plans = {{.dp = 2}, {.dp = 4}};
  const PlansView of_vector = plans;
  EXPECT_EQ(of_vector.size(), 2u);
  EXPECT_EQ(of_vector[1].dp, 4);
  PlanList list;
  list.Insert({.dp = 8});
  const PlansView of_list = list;
  EXPECT_EQ(of_list[0].dp, 8);
  const PlansView reversed(2, [&](size_t i) { return plans[1 - i]; });
  EXPECT_EQ(reversed[0].dp, 4);
}

}  // namespace
}  // namespace plan_list_test_cc
}  // namespace orrery::search
