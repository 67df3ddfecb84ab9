#include "transforms/redistribution/search.h"

#include <algorithm>
#include <limits>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "transforms/redistribution/toy_test_util.h"

// The search on graphs written down, where the answer is plain to see, and on random ones.

namespace orrery::transforms::redistribution {
namespace search_test_cc {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

ToyMoveSet Toy(std::vector<ToyEdge> edges) {
  ToyMoveSet move_set;
  move_set.edges = std::move(edges);
  return move_set;
}

// The nodes of the cheapest plan from node 0; node -1 where there is none.
std::vector<int> Cheapest(const MoveSet& move_set, int to, const SearchLimits& limits = {}) {
  const auto plan = CheapestPlan(move_set, Node(0), Node(to), limits);
  return plan.has_value() ? NodesOf(*plan) : std::vector<int>{-1};
}

TEST(CheapestPlan, TakesTheCheapestWay) {
  ToyMoveSet move_set = Toy({{0, 2, 3.5, 40}, {0, 1, 1, 20}, {1, 2, 2, 30}, {2, 0, 0, 1}});
  move_set.elements = {{0, 7}, {2, 5}};
  const auto plan = CheapestPlan(move_set, Node(0), Node(2));
  ASSERT_TRUE(plan.has_value());
  EXPECT_THAT(EdgesOf(*plan), ElementsAre(1, 2));
  EXPECT_EQ(plan->cost, 3);
  EXPECT_EQ(plan->peak, 30);
  EXPECT_EQ(plan->steps[0].cost, 1);
  EXPECT_EQ(plan->steps[1].cost, 2);
  EXPECT_EQ(plan->steps[0].peak, 20);
  EXPECT_EQ(plan->steps[1].peak, 30);
  EXPECT_EQ(plan->expanded, 2) << "not the target";
  EXPECT_TRUE(plan->exact);
}

TEST(CheapestPlan, OfOneLayoutHasNoSteps) {
  ToyMoveSet move_set = Toy({{0, 1}, {1, 0}});
  move_set.elements = {{0, 12}};
  move_set.normal = {{3, 0}};
  for (const int from : {0, 3}) {
    for (const int to : {0, 3}) {
      const auto plan = CheapestPlan(move_set, Node(from), Node(to), SearchLimits{.labels = 0});
      ASSERT_TRUE(plan.has_value());
      EXPECT_THAT(plan->steps, IsEmpty());
      EXPECT_EQ(plan->cost, 0);
      EXPECT_EQ(plan->peak, 12);
      EXPECT_EQ(plan->expanded, 0);
      EXPECT_TRUE(plan->exact);
    }
  }
}

TEST(CheapestPlan, OfEqualCostsTakesTheFewestSteps) {
  const std::vector<ToyEdge> edges = {{0, 1, 1}, {1, 2, 1}, {2, 3, 1}, {0, 3, 3}, {0, 2, 2}};
  for (size_t i = 0; i < edges.size(); ++i) {
    std::vector<ToyEdge> turned = edges;
    std::rotate(turned.begin(), turned.begin() + static_cast<int64_t>(i), turned.end());
    EXPECT_THAT(Cheapest(Toy(turned), 3), ElementsAre(3));
  }
  // Also when all steps are free, and when the short way is met last.
  EXPECT_THAT(Cheapest(Toy({{0, 1, 0}, {1, 2, 0}, {2, 3, 0}, {1, 3, 0}}), 3), ElementsAre(1, 3));
  EXPECT_THAT(Cheapest(Toy({{0, 1, 0}, {1, 2, 0}, {0, 2, 0}, {2, 3, 5}}), 3), ElementsAre(2, 3));
}

TEST(CheapestPlan, OfEqualPlansTakesTheFirstListed) {
  const auto plan = CheapestPlan(Toy({{0, 1, 2}, {0, 1, 2}, {0, 1, 2}}), Node(0), Node(1));
  EXPECT_THAT(EdgesOf(*plan), ElementsAre(0));
  EXPECT_THAT(Cheapest(Toy({{0, 2, 1}, {0, 1, 1}, {1, 3, 1}, {2, 3, 1}}), 3), ElementsAre(2, 3));
}

TEST(CheapestPlan, StaysWithinTheLimitOfEachStep) {
  ToyMoveSet move_set = Toy({{0, 1, 1, 9}, {0, 2, 2, 8}, {2, 1, 2, 7}});
  EXPECT_THAT(Cheapest(move_set, 1, {.peak = 9}), ElementsAre(1));
  EXPECT_THAT(Cheapest(move_set, 1, {.peak = 8}), ElementsAre(2, 1));
  EXPECT_THAT(Cheapest(move_set, 1, {.peak = 7}), ElementsAre(-1));
  // What is held at the start is no step's.
  move_set.elements = {{0, 100}};
  const auto plan = CheapestPlan(move_set, Node(0), Node(1), 8);
  ASSERT_TRUE(plan.has_value());
  EXPECT_EQ(plan->peak, 100);
  EXPECT_EQ(plan->steps[0].peak, 8);
}

TEST(CheapestPlan, SaysWhereThereIsNone) {
  EXPECT_FALSE(CheapestPlan(Toy({{0, 1}, {2, 1}, {1, 0}}), Node(0), Node(2)).has_value());
  EXPECT_FALSE(CheapestPlan(Toy({}), Node(0), Node(1)).has_value());
}

TEST(CheapestPlan, KnowsLayoutsByTheirNormalForms) {
  ToyMoveSet move_set = Toy({{1, 2, 4}});
  move_set.normal = {{0, 1}, {3, 2}};
  const auto plan = CheapestPlan(move_set, Node(0), Node(3));
  ASSERT_TRUE(plan.has_value());
  EXPECT_THAT(NodesOf(*plan), ElementsAre(2));
}

TEST(CheapestPlan, TakesLastResortsOnlyWhereNothingElseHelps) {
  ToyMoveSet move_set = Toy({{0, 1, 50, 10}, {1, 2, 50, 10}});
  move_set.last_resorts = {{0, 2, 1, 5}};
  EXPECT_THAT(Cheapest(move_set, 2), ElementsAre(1, 2)) << "whatever they cost";
  EXPECT_THAT(Cheapest(move_set, 2, {.peak = 9}), ElementsAre(2));
  EXPECT_THAT(Cheapest(move_set, 2, {.peak = 4}), ElementsAre(-1));
}

// More room than the cheap plan of a narrow limit wants does not make the plan dearer.
TEST(CheapestPlan, TakesTheLastResortOfANarrowerLimit) {
  ToyMoveSet move_set = Toy({{0, 1, 5, 10}, {0, 1, 1, 20}});
  move_set.last_resorts = {{0, 1, 3, 4}};
  const auto cost = [&](int64_t limit) {
    return CheapestPlan(move_set, Node(0), Node(1), limit)->cost;
  };
  EXPECT_EQ(cost(9), 3);
  EXPECT_EQ(cost(19), 3);
  EXPECT_EQ(cost(20), 1);
  move_set.elements = {{1, 10}};
  EXPECT_EQ(cost(19), 5) << "there is a regular way within what the target takes";
}

// A bound is for regular moves: with last resorts it may be too high.
TEST(CheapestPlan, HasNoBoundWithLastResorts) {
  ToyMoveSet move_set = Toy({{0, 1, 1}});
  move_set.last_resorts = {{0, 2, 10}, {1, 2, 1}};
  move_set.bounds = {{0, 100}, {1, 100}};
  const auto plan = CheapestPlan(move_set, Node(0), Node(2));
  ASSERT_TRUE(plan.has_value());
  EXPECT_THAT(NodesOf(*plan), ElementsAre(1, 2));
  EXPECT_EQ(plan->cost, 2);
}

// Bounds that hold but do not grow evenly: the dear way to 3 is looked at before the cheap one.
TEST(CheapestPlan, LooksAgainAtWhatItReachesCheaper) {
  ToyMoveSet move_set = Toy({{0, 1, 1}, {0, 2, 2}, {1, 3, 1}, {2, 3, 1}, {3, 4, 10}});
  move_set.bounds = {{1, 11}};
  const auto plan = CheapestPlan(move_set, Node(0), Node(4));
  ASSERT_TRUE(plan.has_value());
  EXPECT_THAT(NodesOf(*plan), ElementsAre(1, 3, 4));
  EXPECT_EQ(plan->cost, 12);
  EXPECT_EQ(plan->expanded, 5) << "3 twice";
}

TEST(CheapestPlan, DoesNotLookAtWhatCannotBeTheCheapest) {
  ToyMoveSet move_set = Toy({{0, 1, 1}, {0, 2, 1}, {2, 5, 1}, {1, 3, 1}, {3, 4, 1}});
  move_set.bounds = {{2, 100}, {1, 2}, {3, 1}};
  EXPECT_EQ(CheapestPlan(move_set, Node(0), Node(4))->expanded, 3);
  // A label that a cheaper one replaced is left alone.
  move_set = Toy({{0, 1, 5}, {0, 2, 1}, {2, 1, 1}, {1, 3, 10}});
  EXPECT_EQ(CheapestPlan(move_set, Node(0), Node(3))->expanded, 3);
}

TEST(CheapestPlan, GivesUpWithTheBestThatItMet) {
  const ToyMoveSet move_set = Toy({{0, 3, 10}, {0, 1, 1}, {1, 2, 1}, {2, 3, 1}});
  const auto hasty = CheapestPlan(move_set, Node(0), Node(3), SearchLimits{.labels = 3});
  ASSERT_TRUE(hasty.has_value());
  EXPECT_THAT(NodesOf(*hasty), ElementsAre(3));
  EXPECT_FALSE(hasty->exact);
  EXPECT_EQ(hasty->cost, 10);
  EXPECT_EQ(hasty->expanded, 1);
  const auto best = CheapestPlan(move_set, Node(0), Node(3), SearchLimits{.labels = 6});
  ASSERT_TRUE(best.has_value());
  EXPECT_THAT(NodesOf(*best), ElementsAre(1, 2, 3));
  EXPECT_TRUE(best->exact);
  EXPECT_EQ(best->cost, 3);
}

TEST(CheapestPlan, LooksOnceAroundEvenWithoutRoomForLabels) {
  EXPECT_THAT(Cheapest(Toy({{0, 1, 1}}), 1, {.labels = 0}), ElementsAre(1));
  const auto plan =
      CheapestPlan(Toy({{0, 2, 1}, {0, 1, 3}}), Node(0), Node(1), SearchLimits{.labels = 0});
  ASSERT_TRUE(plan.has_value());
  EXPECT_FALSE(plan->exact);
}

TEST(CheapestPlan, ThatGaveUpTurnsToLastResorts) {
  ToyMoveSet move_set = Toy({{0, 1, 1}, {1, 2, 1}, {2, 3, 1}});
  EXPECT_THAT(Cheapest(move_set, 3, {.labels = 2}), ElementsAre(-1));
  move_set.last_resorts = {{0, 3, 20}};
  const auto plan = CheapestPlan(move_set, Node(0), Node(3), SearchLimits{.labels = 2});
  ASSERT_TRUE(plan.has_value());
  EXPECT_THAT(NodesOf(*plan), ElementsAre(3));
  EXPECT_FALSE(plan->exact);
}

// "cost/peak" of each plan.
std::vector<std::string> Trades(const MoveSet& move_set, int to) {
  std::vector<std::string> trades;
  for (const RedistributionPlan& plan : ParetoPlans(move_set, Node(0), Node(to))) {
    trades.push_back(absl::StrCat(plan.cost, "/", plan.peak));
  }
  return trades;
}

TEST(ParetoPlans, TradeCostForMemory) {
  EXPECT_THAT(Trades(Toy({{0, 1, 1, 9}, {0, 1, 3, 7}, {0, 1, 2, 8}, {0, 1, 4, 8}}), 1),
              ElementsAre("1/9", "2/8", "3/7"));
  EXPECT_THAT(Trades(Toy({{0, 1, 1, 9}, {0, 1, 1, 5}, {0, 1, 2, 5}}), 1), ElementsAre("1/5"));
  EXPECT_THAT(Trades(Toy({{0, 1, 1, 9}, {0, 1, 2, 8}, {0, 1, 2, 3}}), 1),
              ElementsAre("1/9", "2/3"));
  EXPECT_THAT(Trades(Toy({{1, 0, 1, 9}}), 1), IsEmpty());
  EXPECT_THAT(Trades(Toy({}), 0), ElementsAre("0/1"));
}

TEST(ParetoPlans, EndWhereAllRoomIsThatOfTheEnds) {
  ToyMoveSet move_set = Toy({{0, 1, 1, 9}, {0, 1, 2, 6}, {0, 1, 3, 5}, {0, 1, 4, 4}});
  move_set.elements = {{0, 6}};
  EXPECT_THAT(Trades(move_set, 1), ElementsAre("1/9", "2/6"));
  move_set.elements = {{1, 5}};
  EXPECT_THAT(Trades(move_set, 1), ElementsAre("1/9", "2/6", "3/5"));
  move_set.elements = {{0, 20}};
  EXPECT_THAT(Trades(move_set, 1), ElementsAre("1/20"));
}

// A last resort that is cheaper and smaller than the regular plans leaves none of them.
TEST(ParetoPlans, LeaveOutWhatALastResortBeats) {
  ToyMoveSet move_set = Toy({{0, 1, 5, 10}, {0, 1, 1, 20}});
  move_set.last_resorts = {{0, 1, 3, 4}};
  EXPECT_THAT(Trades(move_set, 1), ElementsAre("1/20", "3/4"));
  move_set.last_resorts = {{0, 1, 1, 4}};
  EXPECT_THAT(Trades(move_set, 1), ElementsAre("1/4"));
}

TEST(Priced, AddsUpWhatItIsGiven) {
  ToyMoveSet move_set;
  move_set.elements = {{0, 3}};
  std::vector<Move> moves(2);
  moves[0] = {
      .step = {.kind = MoveKind::kAllGather, .axes = {}, .after = Node(1)}, .cost = 2, .peak = 8};
  moves[1] = {
      .step = {.kind = MoveKind::kSlice, .axes = {}, .after = Node(2)}, .cost = 0.5, .peak = 4};
  const RedistributionPlan plan = Priced(move_set, Node(0), moves);
  EXPECT_THAT(NodesOf(plan), ElementsAre(1, 2));
  EXPECT_EQ(plan.cost, 2.5);
  EXPECT_EQ(plan.peak, 8);
  EXPECT_EQ(plan.steps[0].step.kind, MoveKind::kAllGather);
  EXPECT_EQ(plan.steps[1].cost, 0.5);
  EXPECT_EQ(plan.steps[1].peak, 4);
  EXPECT_EQ(Priced(move_set, Node(0), {}).peak, 3);
}

// The least cost and the fewest steps of it from each node to `to`, over edges of at most `limit`.
using Least = std::vector<std::pair<double, int>>;
Least Relaxed(const std::vector<ToyEdge>& edges, int to, int64_t limit) {
  Least least(30, {std::numeric_limits<double>::infinity(), 0});
  least[static_cast<size_t>(to)] = {0, 0};
  for (bool changed = true; changed;) {
    changed = false;
    for (const ToyEdge& edge : edges) {
      if (edge.peak > limit) continue;
      const auto& after = least[static_cast<size_t>(edge.to)];
      const std::pair<double, int> found = {after.first + edge.cost, after.second + 1};
      if (found >= least[static_cast<size_t>(edge.from)] ||
          found.first == std::numeric_limits<double>::infinity()) {
        continue;
      }
      least[static_cast<size_t>(edge.from)] = found;
      changed = true;
    }
  }
  return least;
}

class RandomGraph : public testing::TestWithParam<int> {
 protected:
  void SetUp() override {
    std::mt19937 random(static_cast<uint32_t>(GetParam()));
    const auto draw = [&](int end) {
      return static_cast<int>(random() % static_cast<uint32_t>(end));
    };
    const int nodes = 3 + draw(8);
    for (int i = nodes * 3; i > 0; --i) {
      move_set_.edges.push_back({draw(nodes), draw(nodes), double(draw(6)), 1 + draw(9)});
    }
    // Any part of what a way costs bounds it, and need not grow evenly.
    const Least least = Relaxed(move_set_.edges, 1, kNoLimit);
    for (int node = 0; node < nodes; ++node) {
      const double most = least[static_cast<size_t>(node)].first;
      if (most < 1e9) move_set_.bounds[node] = most * draw(5) / 4;
    }
  }

  ToyMoveSet move_set_;
};

TEST_P(RandomGraph, PlansHaveTheLeastCostAndTheFewestSteps) {
  for (int64_t limit = 0; limit <= 10; ++limit) {
    const auto [cost, steps] = Relaxed(move_set_.edges, 1, limit)[0];
    const auto plan = CheapestPlan(move_set_, Node(0), Node(1), limit);
    ASSERT_EQ(plan.has_value(), cost < 1e9) << limit;
    if (!plan.has_value()) continue;
    EXPECT_EQ(plan->cost, cost);
    EXPECT_EQ(std::ssize(plan->steps), steps);
    EXPECT_LE(plan->peak, limit);
  }
}

TEST_P(RandomGraph, ParetoPlansAreThoseThatNoneBeats) {
  std::vector<std::pair<double, int64_t>> expected;
  double least = std::numeric_limits<double>::infinity();
  for (int64_t limit = 1; limit <= 10; ++limit) {
    const double cost = Relaxed(move_set_.edges, 1, limit)[0].first;
    if (cost >= least) continue;
    least = cost;
    expected.insert(expected.begin(), {cost, limit});
  }
  std::vector<std::pair<double, int64_t>> found;
  for (const RedistributionPlan& plan : ParetoPlans(move_set_, Node(0), Node(1))) {
    found.emplace_back(plan.cost, plan.peak);
  }
  EXPECT_EQ(found, expected);
}

INSTANTIATE_TEST_SUITE_P(Seeds, RandomGraph, testing::Range(0, 100));

}  // namespace
}  // namespace search_test_cc
}  // namespace orrery::transforms::redistribution
