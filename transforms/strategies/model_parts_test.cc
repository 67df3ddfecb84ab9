#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "transforms/strategies/improve.h"
#include "transforms/strategies/random_model_test_util.h"
#include "transforms/strategies/reparametrize.h"
#include "transforms/strategies/solve_model.h"

// What the solver takes away before it searches, and how it mends choices: small cases by hand.

namespace orrery::transforms::strategies {
namespace model_parts_test_cc {
namespace {

using ::testing::DoubleNear;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

constexpr double kNo = kImpossible;

TEST(ModelOf, HasOneTableForEachPairOfNodesAscending) {
  StrategyGraph graph;
  graph.nodes = {{.name = "a", .cost = {1, 2}, .memory = {}},
                 {.name = "b", .cost = {3, 4, 5}, .memory = {6, 7, 8}},
                 {.name = "c", .cost = {9}, .memory = {}}};
  graph.edges = {{.from = 1, .to = 0, .cost = {10, 20, 30, 40, 50, 60}},
                 {.from = 2, .to = 1, .cost = {7, 8, 9}},
                 {.from = 0, .to = 1, .cost = {1, 2, 3, 4, 5, 6}}};
  graph.incompatible = {{1, 2, 0, 1}, {0, 0, 2, 0}};
  graph.live_sets = {{.name = "t", .nodes = {2, 1}, .budget = 5}};
  const Model model = ModelOf(graph);
  EXPECT_EQ(model.cost, (Costs{{1, 2}, {3, 4, 5}, {9}}));
  EXPECT_EQ(model.memory, (Costs{{0, 0}, {6, 7, 8}, {0}}));
  EXPECT_THAT(model.kept, ElementsAre(ElementsAre(0, 1), ElementsAre(0, 1, 2), ElementsAre(0)));
  ASSERT_THAT(model.tables, SizeIs(3));
  EXPECT_THAT(model.tables[0].scope, ElementsAre(0, 1));
  EXPECT_THAT(model.tables[0].values, ElementsAre(11, 32, 53, 24, 45, kNo));
  EXPECT_THAT(model.tables[1].scope, ElementsAre(0, 2));
  EXPECT_THAT(model.tables[1].values, ElementsAre(kNo, 0));
  EXPECT_THAT(model.tables[2].scope, ElementsAre(1, 2));
  EXPECT_THAT(model.tables[2].values, ElementsAre(7, 8, 9));
  ASSERT_THAT(model.limits, SizeIs(1));
  EXPECT_THAT(model.limits[0].nodes, ElementsAre(2, 1));
  EXPECT_EQ(model.limits[0].budget, 5);
}

// The model's costs are the graph's, for all choices.
TEST(ModelOf, CostsWhatTheGraphCosts) {
  for (uint32_t seed = 0; seed < 20; ++seed) {
    std::mt19937 random(seed);
    StrategyGraph graph;
    for (int32_t i = 0; i < 5; ++i) AddRandomNode(graph, Draw(random, 1, 3), random);
    for (int32_t i = 0; i < 8; ++i) {
      const int32_t from = Draw(random, 0, 4);
      AddRandomEdge(graph, from, (from + Draw(random, 1, 4)) % 5, 4, random);
    }
    graph.incompatible = {{4, 0, 1, 0}, {2, 0, 3, 0}};
    graph.live_sets = {{.name = "t", .nodes = {0, 3, 4}, .budget = 50}};
    const Model model = ModelOf(graph);
    ForEachChoice(model, [&](const std::vector<int32_t>& choice) {
      const double cost = CostOf(graph, choice), ours = CostOf(model, choice);
      EXPECT_TRUE(cost == ours || std::abs(cost - ours) < 1e-9);
      EXPECT_EQ(Fits(model, choice), MemoryOf(graph, graph.live_sets[0], choice) <= 50);
    });
  }
}

TEST(Slack, IsThatOfRoundingAndNeverBelowZero) {
  EXPECT_EQ(Slack(0), 0);
  EXPECT_EQ(Slack(1e12), 1);
  EXPECT_EQ(Slack(-1e12), 1);
  Model model;
  model.cost = {{0}};
  model.memory = {{0.1 + 0.2}};
  model.limits = {{.live_set = 0, .nodes = {0}, .budget = 0.3}};
  EXPECT_TRUE(Fits(model, {0}));
  model.memory = {{0.3 + 1e-9}};
  EXPECT_FALSE(Fits(model, {0}));
}

// Only what meets nothing at all goes: brute force over pairs of neighbours, until it is stable.
TEST(DropImpossible, KeepsEachStrategyThatMeetsAllNeighbours) {
  int32_t none = 0;
  for (uint32_t seed = 0; seed < 80; ++seed) {
    SCOPED_TRACE(seed);
    Model whole = RandomModel(seed, 6, 2);
    std::mt19937 random(seed);
    for (Table& table : whole.tables) {  // equal strategies may not meet, either
      for (double& cost : table.values) cost = Draw(random, 0, 3) == 0 ? kNo : cost;
    }
    std::set<std::pair<int32_t, int32_t>> dead;  // node and strategy
    for (bool changed = true; changed;) {
      changed = false;
      for (const Table& table : whole.tables) {
        for (const size_t side : {size_t{0}, size_t{1}}) {
          const int32_t node = table.scope[side], other = table.scope[1 - side];
          const size_t columns = whole.strategies(table.scope[1]);
          for (size_t a = 0; a < whole.strategies(node); ++a) {
            bool meets = false;
            for (size_t b = 0; b < whole.strategies(other); ++b) {
              const size_t at = side == 0 ? a * columns + b : b * columns + a;
              meets = meets || (table.values[at] != kNo &&
                                dead.count({other, static_cast<int32_t>(b)}) == 0);
            }
            if (!meets) changed |= dead.insert({node, static_cast<int32_t>(a)}).second;
          }
        }
      }
    }
    Model model = whole;
    const int32_t empty = DropImpossible(model);
    none += empty >= 0 ? 1 : 0;
    for (int32_t node = 0; node < 6; ++node) {
      std::vector<int32_t> kept;
      for (int32_t a = 0; a < static_cast<int32_t>(whole.strategies(node)); ++a) {
        if (dead.count({node, a}) == 0) kept.push_back(a);
      }
      EXPECT_TRUE(empty >= 0 || model.kept[static_cast<size_t>(node)] == kept);
      EXPECT_TRUE(node != empty || kept.empty());
    }
  }
  EXPECT_GT(none, 5);
  EXPECT_LT(none, 75);
}

// b is dearer by 1, but saves 2 where the neighbour takes its second strategy.
TEST(DropDominated, LooksAtEachNeighbour) {
  StrategyGraph graph;
  graph.nodes = {{.name = "n", .cost = {0, 1}, .memory = {}},
                 {.name = "m", .cost = {0, 0}, .memory = {}}};
  graph.edges = {{.from = 0, .to = 1, .cost = {0, 2, 0, 0}}};
  Model model = ModelOf(graph);
  DropDominated(model);
  EXPECT_THAT(model.kept[0], ElementsAre(0, 1));
  graph.edges[0].cost = {0, 1, 0, 0};  // saves as much as it costs: one of the two suffices
  model = ModelOf(graph);
  DropDominated(model);
  EXPECT_THAT(model.kept[0], SizeIs(1));
  graph.edges[0].cost = {0, kNo, 0, 0};  // the cheap one cannot meet m's second
  model = ModelOf(graph);
  DropDominated(model);
  EXPECT_THAT(model.kept[0], ElementsAre(0, 1));
}

TEST(DropDominated, KeepsWhatNeedsLessMemoryWhereMemoryIsLimited) {
  StrategyGraph graph;
  graph.nodes = {{.name = "n", .cost = {0, 5, 6}, .memory = {9, 2, 2}}};
  Model model = ModelOf(graph);
  DropDominated(model);
  EXPECT_THAT(model.kept[0], ElementsAre(0));
  graph.live_sets = {{.name = "t", .nodes = {0}, .budget = 3}};
  model = ModelOf(graph);
  DropDominated(model);
  EXPECT_THAT(model.kept[0], ElementsAre(0, 1));
  EXPECT_THAT(model.cost[0], ElementsAre(0, 5));
  EXPECT_THAT(model.memory[0], ElementsAre(9, 2));
}

// Equal strategies: one of them stays, whichever, and its tables with it.
TEST(DropDominated, KeepsOneOfEquals) {
  StrategyGraph graph;
  graph.nodes = {{.name = "n", .cost = {2, 2, 2}, .memory = {}},
                 {.name = "m", .cost = {1, 1}, .memory = {}}};
  graph.edges = {{.from = 1, .to = 0, .cost = {4, 4, 4, 4, 4, 4}}};
  Model model = ModelOf(graph);
  DropDominated(model);
  EXPECT_THAT(model.kept[0], SizeIs(1));
  EXPECT_THAT(model.kept[1], SizeIs(1));
  EXPECT_THAT(model.tables[0].values, ElementsAre(4));
}

// A table of three nodes says what Goldstein's test does not look at.
TEST(DropDominated, LeavesNodesInLargerTablesAlone) {
  Model model;
  model.kept = {{0, 1}, {0, 1}, {0, 1}, {0, 1}};
  model.cost = {{0, 1}, {0, 1}, {0, 1}, {0, 1}};
  model.memory = Costs(4, {0, 0});
  model.tables = {{.scope = {0, 1, 2}, .values = {9, 9, 9, 9, 9, 9, 9, 0}}};
  DropDominated(model);
  EXPECT_THAT(model.kept, ElementsAre(SizeIs(2), SizeIs(2), SizeIs(2), ElementsAre(0)));
  EXPECT_EQ(CostOf(model, {1, 1, 1, 0}), 3);
  EXPECT_EQ(CostOf(model, {1, 0, 1, 0}), 11);
}

std::vector<int32_t> LimitsLeft(const std::vector<LiveSet>& live_sets) {
  StrategyGraph graph;
  for (int32_t i = 0; i < 4; ++i) {
    graph.nodes.push_back({.name = "", .cost = {0, 0}, .memory = {1, 10}});
  }
  graph.nodes[3].memory = {};
  graph.live_sets = live_sets;
  Model model = ModelOf(graph);
  DropLooseLimits(model);
  std::vector<int32_t> left;
  for (const MemoryLimit& limit : model.limits) left.push_back(limit.live_set);
  return left;
}

TEST(DropLooseLimits, KeepsALimitThatNoOtherImplies) {
  const LiveSet wide{.name = "", .nodes = {0, 1, 2}, .budget = 15};
  const LiveSet narrow{.name = "", .nodes = {2, 0}, .budget = 15};
  const LiveSet tight{.name = "", .nodes = {0, 1}, .budget = 14};
  EXPECT_THAT(LimitsLeft({wide}), ElementsAre(0));
  EXPECT_THAT(LimitsLeft({narrow, wide}), ElementsAre(1));
  EXPECT_THAT(LimitsLeft({wide, tight}), ElementsAre(0, 1));
  EXPECT_THAT(LimitsLeft({tight, narrow}), ElementsAre(0, 1));
  // Exactly what all need at most is enough; a hair less is not.
  EXPECT_THAT(LimitsLeft({{.name = "", .nodes = {0, 1, 2, 3}, .budget = 30}}), IsEmpty());
  EXPECT_THAT(LimitsLeft({{.name = "", .nodes = {0, 1, 2, 3}, .budget = 29.5}}), ElementsAre(0));
  // On nothing: only a budget below zero binds.
  EXPECT_THAT(LimitsLeft({{.name = "", .nodes = {3}, .budget = 0}}), IsEmpty());
  EXPECT_THAT(LimitsLeft({{.name = "", .nodes = {3}, .budget = -1}}), ElementsAre(0));
}

TEST(DropLooseLimits, ChangesNothingOfWhatFits) {
  size_t before = 0, after = 0;
  for (uint32_t seed = 0; seed < 60; ++seed) {
    SCOPED_TRACE(seed);
    std::mt19937 random(seed);
    Model model = RandomModel(seed, 5, 0);
    model.limits.clear();
    for (int32_t i = 0; i < 6; ++i) {
      MemoryLimit limit{.live_set = i, .nodes = {}, .budget = 10.0 * Draw(random, 1, 9)};
      for (int32_t node = 0; node < 5; ++node) {
        if (Draw(random, 0, 2) > 0) limit.nodes.push_back(node);
      }
      model.limits.push_back(std::move(limit));
    }
    Model dropped = model;
    DropLooseLimits(dropped);
    before += model.limits.size();
    after += dropped.limits.size();
    ForEachChoice(model, [&](const std::vector<int32_t>& choice) {
      EXPECT_EQ(Fits(dropped, choice), Fits(model, choice));
    });
  }
  EXPECT_LT(after, before);
}

// From 0, 0 no single change is cheaper; from 1, 0 the last one to be looked at is.
TEST(Improve, StopsWhereNoSingleChangeIsCheaper) {
  StrategyGraph graph;
  graph.nodes = {{.name = "a", .cost = {2, 0}, .memory = {1, 5}},
                 {.name = "b", .cost = {2, 0}, .memory = {1, 5}}};
  graph.edges = {{.from = 0, .to = 1, .cost = {0, 9, 9, 0}}};
  Model model = ModelOf(graph);
  std::vector<int32_t> choice = {0, 0};
  Improve(model, choice);
  EXPECT_THAT(choice, ElementsAre(0, 0));
  choice = {0, 1};
  Improve(model, choice);
  EXPECT_THAT(choice, ElementsAre(1, 1));
  // Where there is memory for one of the two only, the way there is barred.
  model.limits = {{.live_set = 0, .nodes = {0, 1}, .budget = 6}};
  choice = {0, 1};
  Improve(model, choice);
  EXPECT_THAT(choice, ElementsAre(0, 0));
}

TEST(Improve, LeavesImpossibleChoices) {
  StrategyGraph graph;
  graph.nodes = {{.name = "a", .cost = {1, 7}, .memory = {}},
                 {.name = "b", .cost = {1, 2}, .memory = {}}};
  graph.edges = {{.from = 0, .to = 1, .cost = {kNo, kNo, 0, 0}}};
  std::vector<int32_t> choice = {0, 1};
  Improve(ModelOf(graph), choice);
  EXPECT_THAT(choice, ElementsAre(1, 0));
}

// Frees the most for its price: b frees 4 for 2, a frees 9 for 18, c is impossible.
TEST(Repair, TakesTheLeastPriceForMemory) {
  StrategyGraph graph;
  graph.nodes = {{.name = "a", .cost = {0, 18}, .memory = {10, 1}},
                 {.name = "b", .cost = {0, 2}, .memory = {5, 1}},
                 {.name = "c", .cost = {0, kNo}, .memory = {5, 0}}};
  graph.live_sets = {{.name = "t", .nodes = {0, 1, 2}, .budget = 17}};
  const auto repaired = [&](double budget) {
    graph.live_sets[0].budget = budget;
    std::vector<int32_t> choice = {0, 0, 0};
    return Repair(ModelOf(graph), choice) ? choice : std::vector<int32_t>{};
  };
  EXPECT_THAT(repaired(20), ElementsAre(0, 0, 0));
  EXPECT_THAT(repaired(16), ElementsAre(0, 1, 0));
  EXPECT_THAT(repaired(11), ElementsAre(1, 1, 0));  // b first, for it is the cheaper
  EXPECT_THAT(repaired(7), ElementsAre(1, 1, 0));
  EXPECT_THAT(repaired(6), IsEmpty());
}

// Only what is missing counts: to free more than that is worth nothing.
TEST(Repair, CountsNoMoreThanWhatIsMissing) {
  StrategyGraph graph;
  graph.nodes = {{.name = "a", .cost = {0, 10}, .memory = {10, 0}},
                 {.name = "b", .cost = {0, 4}, .memory = {4, 2}}};
  graph.live_sets = {{.name = "t", .nodes = {0, 1}, .budget = 12}};
  std::vector<int32_t> choice = {0, 0};
  EXPECT_TRUE(Repair(ModelOf(graph), choice));  // 4 for 2 of 2, not 10 for 2 of 10
  EXPECT_THAT(choice, ElementsAre(0, 1));
}

// All choices cost what they cost before, but those that lost a strategy, which are not the best.
TEST(Reparametrize, ChangesNoCost) {
  for (uint32_t seed = 0; seed < 40; ++seed) {
    SCOPED_TRACE(seed);
    Model model = RandomModel(seed, 5, seed % 2 == 0 ? 0 : 6);
    if (DropImpossible(model) >= 0) continue;
    model.limits.clear();
    const Model before = model;
    Reparametrize(model);
    const auto position_before = [&](size_t node, int32_t strategy) {
      const std::vector<int32_t>& kept = before.kept[node];
      return static_cast<int32_t>(std::ranges::find(kept, strategy) - kept.begin());
    };
    ForEachChoice(model, [&](const std::vector<int32_t>& choice) {
      std::vector<int32_t> same = InGraph(model, choice);
      for (size_t i = 0; i < same.size(); ++i) same[i] = position_before(i, same[i]);
      const double cost = CostOf(before, same), now = CostOf(model, choice);
      EXPECT_TRUE(now == cost || std::abs(now - cost) < 1e-6) << now << " for " << cost;
    });
  }
}

// On a tree the sum of the least costs rises to the optimum itself.
TEST(Reparametrize, ReachesTheOptimumOfAChain) {
  for (uint32_t seed = 0; seed < 20; ++seed) {
    SCOPED_TRACE(seed);
    std::mt19937 random(seed);
    StrategyGraph graph;
    for (int32_t i = 0; i < 6; ++i) {
      AddRandomNode(graph, 3, random);
      if (i > 0) AddRandomEdge(graph, i - 1, i, 0, random);
    }
    Model model = ModelOf(graph);
    const double least = LeastCost(model, false);
    Reparametrize(model);
    double bound = 0;
    for (const auto& costs : model.cost) bound += std::ranges::min(costs);
    for (const Table& table : model.tables) bound += std::ranges::min(table.values);
    EXPECT_THAT(bound, DoubleNear(least, 1e-6));
    EXPECT_NEAR(LeastCost(model, false), least, 1e-6);
  }
}

// The choice is in the numbers of the model that came in, which may itself have lost strategies.
TEST(SolveModel, AnswersInTheNumbersOfItsModel) {
  for (uint32_t seed = 0; seed < 60; ++seed) {
    SCOPED_TRACE(seed);
    Model model = RandomModel(seed, 6, 4);
    if (seed % 2 == 0 && DropImpossible(model) >= 0) continue;
    model.limits[0].budget = 15.0 * 6;
    const double least = LeastCost(model, true);
    const ModelSolution solution =
        SolveModel(model, {.repeats = {}, .table_limit = seed % 3 == 0 ? 16 : 1 << 20});
    ASSERT_EQ(solution.found(), least != kImpossible);
    EXPECT_EQ(solution.bound == kImpossible, !solution.found());
    if (!solution.found()) continue;
    EXPECT_NEAR(solution.cost, least, 1e-9);
    EXPECT_NEAR(CostOf(model, solution.choice), least, 1e-9);
    EXPECT_TRUE(Fits(model, solution.choice));
    EXPECT_GE(solution.bound, solution.cost - 1e-9);
  }
}

}  // namespace
}  // namespace model_parts_test_cc
}  // namespace orrery::transforms::strategies
