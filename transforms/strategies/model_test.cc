#include "transforms/strategies/model.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "transforms/strategies/bucket_tree.h"
#include "transforms/strategies/improve.h"
#include "transforms/strategies/label_search.h"
#include "transforms/strategies/minimize.h"
#include "transforms/strategies/random_model_test_util.h"
#include "transforms/strategies/reparametrize.h"

// The parts of the solver, each against enumeration.

namespace orrery::transforms::strategies {
namespace model_test_cc {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

// a–b–c where b's second strategy meets nothing, and so c's first one meets nothing either.
TEST(Model, DropsWhatIsImpossibleUntilNothingChanges) {
  StrategyGraph graph;
  graph.nodes.resize(3);
  for (StrategyNode& node : graph.nodes) node.cost = {1, 2};
  graph.edges = {{.from = 0, .to = 1, .cost = {0, kImpossible, 0, kImpossible}},
                 {.from = 2, .to = 1, .cost = {kImpossible, 0, 0, 0}}};
  Model model = ModelOf(graph);
  EXPECT_EQ(DropImpossible(model), -1);
  EXPECT_THAT(model.kept, ElementsAre(ElementsAre(0, 1), ElementsAre(0), ElementsAre(1)));
  EXPECT_THAT(model.tables[1].values, ElementsAre(0));
  EXPECT_THAT(InGraph(model, {1, 0, 0}), ElementsAre(1, 0, 1));
}

TEST(Model, NamesTheNodeWithoutStrategies) {
  StrategyGraph graph;
  graph.nodes.resize(2);
  graph.nodes[0].cost = {1};
  graph.nodes[1].cost = {kImpossible};
  Model model = ModelOf(graph);
  EXPECT_EQ(DropImpossible(model), 1);
}

TEST(Model, KeepsTheOptimumWithoutDominatedStrategies) {
  size_t before = 0, after = 0;
  for (uint32_t seed = 0; seed < 100; ++seed) {
    SCOPED_TRACE(seed);
    Model model = RandomModel(seed, 5, seed % 2 == 0 ? 0 : 5);
    if (seed % 4 < 2) model.limits.clear();
    const double least = LeastCost(model, true);
    for (const auto& kept : model.kept) before += kept.size();
    DropDominated(model);
    for (const auto& kept : model.kept) after += kept.size();
    const double now = LeastCost(model, true);
    EXPECT_TRUE(now == least || std::abs(now - least) < 1e-9);
  }
  EXPECT_LT(after, before);
}

// Nodes of one strategy are in no table any more, and no choice costs other than before.
TEST(Model, FoldsNodesOfOneStrategyIntoTheirNeighbours) {
  for (uint32_t seed = 0; seed < 50; ++seed) {
    SCOPED_TRACE(seed);
    Model model = RandomModel(seed, 6, seed % 2 == 0 ? 0 : 5);
    for (const size_t fixed : {size_t{0}, size_t{seed % 5} + 1}) {
      model.cost[fixed].back() = kImpossible;
      while (model.cost[fixed].size() > 1 && DropImpossible(model) < 0) {
        model.cost[fixed].back() = kImpossible;
      }
    }
    const Model before = model;
    FoldFixed(model);
    for (const Table& table : model.tables) {
      for (const int32_t node : table.scope) EXPECT_GT(model.strategies(node), 1);
    }
    ForEachChoice(before, [&](const std::vector<int32_t>& choice) {
      const double cost = CostOf(before, choice);
      if (cost == kImpossible) {
        EXPECT_EQ(CostOf(model, choice), kImpossible);
      } else {
        EXPECT_NEAR(CostOf(model, choice), cost, 1e-9);
      }
    });
  }
}

// A table of several nodes, as of repeated blocks, of which the first and the last are fixed.
TEST(Model, FoldsNodesOutOfLargeTables) {
  Model model;
  model.cost = {{1}, {10, 20}, {5, 6}, {2}};
  model.tables = {{.scope = {0, 1, 2, 3}, .values = {0, 1, 2, 3}},
                  {.scope = {0, 3}, .values = {7}}};
  FoldFixed(model);
  ASSERT_THAT(model.tables, SizeIs(1));
  EXPECT_THAT(model.tables[0].scope, ElementsAre(1, 2));
  EXPECT_THAT(model.tables[0].values, ElementsAre(0, 1, 2, 3));
  EXPECT_THAT(model.cost[0], ElementsAre(8));
}

TEST(Model, DropsLimitsThatCannotBind) {
  StrategyGraph graph;
  graph.nodes = {{.name = "a", .cost = {1, 1}, .memory = {3, 4}},
                 {.name = "b", .cost = {1, 1}, .memory = {3, 4}},
                 {.name = "c", .cost = {1}, .memory = {}}};
  graph.live_sets = {{.name = "ample", .nodes = {0, 1}, .budget = 8},
                     {.name = "within", .nodes = {0, 2}, .budget = 3.5},
                     {.name = "binding", .nodes = {0, 1}, .budget = 3.5},
                     {.name = "alike", .nodes = {1, 0, 2}, .budget = 3.5}};
  Model model = ModelOf(graph);
  DropLooseLimits(model);
  ASSERT_THAT(model.limits, SizeIs(1));
  EXPECT_EQ(model.limits[0].live_set, 2);
  EXPECT_TRUE(!Fits(model, {0, 0, 0}));
}

TEST(MinimizeOut, IsTheLeastSumOfEachRow) {
  const std::vector<double> first = {1, 5, 7, 2}, second = {4, 1};
  const MinimizeTask task = {
      .sizes = {2}, .inputs = {{first.data(), {2}}, {second.data(), {0}}}, .own = {0.5, 0}};
  std::vector<double> least;
  MinimizeOut(task, least);
  EXPECT_THAT(least, ElementsAre(5.5, 3));
  EXPECT_THAT(LeastForEach(task), ElementsAre(5.5, 3));
}

// A star is undone from its rays; a ring by nodes of degree two.
TEST(EliminationOrder, TakesTheSmallestTableNext) {
  StrategyGraph graph;
  graph.nodes.resize(5);
  for (StrategyNode& node : graph.nodes) node.cost = {0, 1, 2};
  for (int32_t ray = 1; ray < 5; ++ray) {
    graph.edges.push_back({.from = 0, .to = ray, .cost = std::vector<double>(9)});
  }
  const Model star = ModelOf(graph);
  const EliminationOrder order = OrderNodes(star, 9, {});
  EXPECT_THAT(order.nodes, ElementsAre(1, 2, 3, 0, 4));
  EXPECT_THAT(order.parent, ElementsAre(4, 0, 0, 0, -1));
  EXPECT_EQ(order.core, 5u);
  EXPECT_THAT(OrderNodes(star, 9, {1, 2}).nodes, ElementsAre(3, 4, 0, 1, 2));
  EXPECT_EQ(OrderNodes(star, 8, {}).core, 0u);
}

TEST(BucketTree, IsExactWhereTablesAreLarge) {
  for (uint32_t seed = 0; seed < 60; ++seed) {
    SCOPED_TRACE(seed);
    const Model model = RandomModel(seed, 6, 0);
    BucketTree tree(model, 1 << 20);
    EXPECT_TRUE(tree.exact());
    const double least = LeastCost(model, false);
    EXPECT_NEAR(tree.Fill(model.cost), least, 1e-9);
    std::vector<int32_t> choice(model.nodes());
    tree.Descend(choice);
    EXPECT_NEAR(CostOf(model, choice), least, 1e-9);
  }
}

TEST(BucketTree, BoundsWhereTablesAreSmall) {
  int32_t split = 0;
  for (uint32_t seed = 0; seed < 60; ++seed) {
    SCOPED_TRACE(seed);
    const Model model = RandomModel(seed, 6, 0);
    BucketTree tree(model, 16);
    split += tree.exact() ? 0 : 1;
    EXPECT_LE(tree.Fill(model.cost), LeastCost(model, false) + 1e-9);
  }
  EXPECT_GT(split, 20);
}

// What the last nodes cost, the others at their cheapest.
TEST(BucketTree, LeavesTheLastNodes) {
  for (uint32_t seed = 0; seed < 40; ++seed) {
    SCOPED_TRACE(seed);
    const Model model = RandomModel(seed, 5, 0);
    BucketTree tree(model, 1 << 20, {3, 1});
    tree.Fill(model.cost);
    const Table remaining = tree.Remaining({3, 1});
    std::vector<double> expected(remaining.values.size(), kImpossible);
    ForEachChoice(model, [&](const std::vector<int32_t>& choice) {
      double& least = expected[static_cast<size_t>(choice[3]) * model.strategies(1) +
                               static_cast<size_t>(choice[1])];
      least = std::min(least, CostOf(model, choice));
    });
    for (size_t i = 0; i < expected.size(); ++i) {
      EXPECT_NEAR(remaining.values[i], expected[i], 1e-9);
    }
  }
}

TEST(SearchLabels, FindsTheBestThatFits) {
  for (uint32_t seed = 0; seed < 100; ++seed) {
    SCOPED_TRACE(seed);
    Model model = RandomModel(seed, 6, 0);
    model.limits[0].budget -= 4 * (seed % 9);
    BucketTree tree(model, seed % 2 == 0 ? 1 << 20 : 16);
    const Prices prices{{seed % 3 == 0 ? 0.0 : 0.3}};
    const Costs costs = prices.Add(model);
    tree.Fill(costs);
    const LabelSearchResult all =
        SearchLabels(model, tree, prices, kImpossible, {.width = 1 << 20, .labels = 1 << 30});
    const double least = LeastCost(model, true);
    if (least == kImpossible) {
      EXPECT_THAT(all.choice, IsEmpty());
      continue;
    }
    EXPECT_NEAR(all.cost, least, 1e-9);
    EXPECT_TRUE(Fits(model, all.choice));
    EXPECT_GE(all.bound, all.cost - 1e-9);
    // Nothing is better than the best.
    EXPECT_THAT(
        SearchLabels(model, tree, prices, least, {.width = 1 << 20, .labels = 1 << 30}).choice,
        IsEmpty());
    const LabelSearchResult beam =
        SearchLabels(model, tree, prices, kImpossible, {.width = 2, .labels = 1 << 30});
    EXPECT_LE(beam.bound, least + 1e-9);
    EXPECT_GE(beam.cost, least - 1e-9);
    EXPECT_LE(beam.labels, all.labels);
  }
}

TEST(Improve, MakesNoChoiceDearerNorTooLarge) {
  double before = 0, after = 0;
  for (uint32_t seed = 0; seed < 100; ++seed) {
    SCOPED_TRACE(seed);
    const Model model = RandomModel(seed, 6, 0);
    std::vector<int32_t> choice(model.nodes(), 1);
    if (!Repair(model, choice)) continue;
    EXPECT_TRUE(Fits(model, choice));
    const double cost = CostOf(model, choice);
    Improve(model, choice);
    EXPECT_TRUE(Fits(model, choice));
    EXPECT_LE(CostOf(model, choice), cost);
    before += cost;
    after += CostOf(model, choice);
  }
  EXPECT_LT(after, before);
}

TEST(Repair, FreesWhatIsMissingOrSaysThatItCannot) {
  StrategyGraph graph;
  graph.nodes = {{.name = "a", .cost = {0, 5}, .memory = {10, 2}},
                 {.name = "b", .cost = {0, 1}, .memory = {10, 3}}};
  graph.live_sets = {{.name = "t", .nodes = {0, 1}, .budget = 13}};
  std::vector<int32_t> choice = {0, 0};
  EXPECT_TRUE(Repair(ModelOf(graph), choice));
  EXPECT_THAT(choice, ElementsAre(0, 1));
  graph.live_sets[0].budget = 4;
  EXPECT_FALSE(Repair(ModelOf(graph), choice));
}

TEST(Reparametrize, RaisesTheBoundAndKeepsTheOptimum) {
  const auto sum_of_least = [](const Model& model) {
    double sum = 0;
    for (const auto& costs : model.cost) sum += std::ranges::min(costs);
    for (const Table& table : model.tables) sum += std::ranges::min(table.values);
    return sum;
  };
  double before = 0, after = 0;
  size_t kept_before = 0, kept_after = 0;
  for (uint32_t seed = 0; seed < 100; ++seed) {
    SCOPED_TRACE(seed);
    Model model = RandomModel(seed, 6, seed % 2 == 0 ? 0 : 6);
    if (DropImpossible(model) >= 0) continue;
    if (seed % 4 < 2) model.limits.clear();
    const double least = LeastCost(model, true);
    before += sum_of_least(model);
    for (const auto& kept : model.kept) kept_before += kept.size();
    Reparametrize(model);
    for (const auto& kept : model.kept) kept_after += kept.size();
    after += sum_of_least(model);
    const double now = LeastCost(model, true);
    EXPECT_TRUE(now == least || std::abs(now - least) < 1e-9);
    EXPECT_LE(sum_of_least(model), LeastCost(model, false) + 1e-9);
  }
  EXPECT_GT(after, before);
  EXPECT_LT(kept_after, kept_before);
}

}  // namespace
}  // namespace model_test_cc
}  // namespace orrery::transforms::strategies
