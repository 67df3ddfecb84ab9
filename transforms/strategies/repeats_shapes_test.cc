#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "transforms/strategies/model.h"
#include "transforms/strategies/random_graph_test_util.h"
#include "transforms/strategies/repeats.h"

// Repeated blocks of shapes at the edge: not connected, few, wide boundaries; and by hand.

namespace orrery::transforms::strategies {
namespace repeats_shapes_test_cc {
namespace {

using ::testing::ElementsAre;
using ::testing::SizeIs;

size_t At(int32_t number) { return static_cast<size_t>(number); }

// `count` blocks of one node each, with costs 0 and 1, and 3 for a change from one to the next.
StrategyGraph Switches(int32_t count) {
  StrategyGraph graph;
  for (int32_t i = 0; i < count; ++i) {
    graph.nodes.push_back({.name = "", .cost = {0, 1}, .memory = {2, 1}});
    if (i > 0) graph.edges.push_back({.from = i - 1, .to = i, .cost = {0, 3, 3, 0}});
  }
  return graph;
}

// One node a block, `size` nodes a block in general.
SolveOptions Blocks(int32_t count, int32_t size) {
  SolveOptions options;
  auto& blocks = options.repeats.emplace_back().blocks;
  for (int32_t i = 0; i < count * size; ++i) {
    if (i % size == 0) blocks.emplace_back();
    blocks.back().push_back(i);
  }
  return options;
}

// One more node at each end: the first pays 100 for strategy 0, the last for strategy 1. One
// change is needed, and all before it are in 1: the first block is the best place.
TEST(Repeats, ChangeWhereItCostsLeast) {
  for (int32_t count = 1; count <= 9; ++count) {
    SCOPED_TRACE(count);
    StrategyGraph graph = Switches(count);
    for (const int32_t end : {0, count - 1}) {
      const auto node = static_cast<int32_t>(graph.nodes.size());
      graph.nodes.push_back({.name = "", .cost = {0, 0}, .memory = {}});
      graph.nodes.back().cost[end == 0 && node == count ? 0 : 1] = 100;
      graph.edges.push_back({.from = node, .to = end, .cost = {0, 3, 3, 0}});
    }
    const StrategyChoice choice = SolveStrategies(graph, Blocks(count, 1)).value();
    EXPECT_EQ(choice.cost, 3);
    EXPECT_TRUE(choice.optimal());
    std::vector<int32_t> expected(graph.nodes.size(), 0);
    expected[At(count)] = 1;
    EXPECT_EQ(choice.assignment, expected);
  }
}

TEST(Repeats, NeedNotBeConnected) {
  for (uint32_t seed = 0; seed < 10; ++seed) {
    SCOPED_TRACE(seed);
    StrategyGraph graph;
    for (int32_t block = 0; block < 7; ++block) {
      std::mt19937 random(seed);
      for (int32_t i = 0; i < 3; ++i) {
        AddRandomNode(graph, 3, random);
        if (i > 0) AddRandomEdge(graph, 3 * block, 3 * block + i, 4, random);
      }
    }
    const StrategyChoice flat = SolveStrategies(graph).value();
    const StrategyChoice composed = SolveStrategies(graph, Blocks(7, 3)).value();
    ASSERT_FALSE(composed.none.has_value());
    EXPECT_NEAR(composed.cost, flat.cost, 1e-9);
    EXPECT_DOUBLE_EQ(composed.cost, CostOf(graph, composed.assignment));
    EXPECT_TRUE(composed.optimal());
  }
}

// Boundaries of 21 × 21 choices are too many for a table of both: solved one by one.
TEST(Repeats, MayHaveBoundariesTooWideToCompose) {
  StrategyGraph graph;
  for (int32_t block = 0; block < 4; ++block) {
    std::mt19937 random(3);
    for (int32_t i = 0; i < 2; ++i) AddRandomNode(graph, 21, random);
  }
  for (int32_t block = 0; block < 4; ++block) {
    std::mt19937 random(4);
    AddRandomEdge(graph, 2 * block, 2 * block + 1, 0, random);
    for (int32_t i = 2 * block; block < 3 && i < 2 * block + 2; ++i) {
      AddRandomEdge(graph, i, i + 2, 0, random);
    }
  }
  const StrategyChoice composed = SolveStrategies(graph, Blocks(4, 2)).value();
  EXPECT_EQ(composed.composed, 0);
  EXPECT_NEAR(composed.cost, SolveStrategies(graph).value().cost, 1e-9);
  EXPECT_TRUE(composed.optimal());
}

TEST(Repeats, OfNothingChangeNothing) {
  const StrategyGraph graph = Switches(4);
  for (const std::vector<std::vector<int32_t>>& blocks :
       {std::vector<std::vector<int32_t>>{}, {{}}, {{}, {}, {}, {}}, {{1}}, {{1}, {2}}}) {
    const SolveOptions options{.repeats = {{.blocks = blocks}, {.blocks = {}}}};
    const StrategyChoice choice = SolveStrategies(graph, options).value();
    EXPECT_EQ(choice.cost, 0);
    EXPECT_THAT(choice.assignment, ElementsAre(0, 0, 0, 0));
  }
}

// Blocks that cannot meet each other: no choice, with and without repeats.
TEST(Repeats, SayWhereThereIsNoChoice) {
  StrategyGraph graph = Switches(6);
  for (StrategyEdge& edge : graph.edges) edge.cost = {kImpossible, 0, kImpossible, kImpossible};
  const StrategyChoice composed = SolveStrategies(graph, Blocks(6, 1)).value();
  const StrategyChoice flat = SolveStrategies(graph).value();
  ASSERT_TRUE(composed.none.has_value());
  ASSERT_TRUE(flat.none.has_value());
  EXPECT_EQ(composed.none->reason, flat.none->reason);
}

// A budget that all fit is no reason to solve block by block; one that binds is.
TEST(Repeats, HeedBudgets) {
  StrategyGraph graph = Switches(8);
  LiveSet live{.name = "all", .nodes = {0, 1, 2, 3, 4, 5, 6, 7}, .budget = 16};
  graph.live_sets = {live};
  EXPECT_EQ(SolveStrategies(graph, Blocks(8, 1)).value().cost, 0);
  graph.live_sets[0].budget = 15.5;  // one must change, at an end, or all
  const StrategyChoice choice = SolveStrategies(graph, Blocks(8, 1)).value();
  EXPECT_EQ(choice.cost, 1 + 3);
  EXPECT_THAT(choice.assignment, SizeIs(8));
  graph.live_sets[0].budget = 9.5;  // one may stay as it was: as dear as all
  EXPECT_EQ(SolveStrategies(graph, Blocks(8, 1)).value().cost, 8);
}

TEST(ValidateRepeats, SaysWordByWordWhatIsNotEqual) {
  const Model model = ModelOf(Switches(5));
  const auto error_of = [&](const std::vector<std::vector<int32_t>>& blocks) {
    return std::string(ValidateRepeats(model, {{.blocks = blocks}}).message());
  };
  EXPECT_EQ(error_of({{0}, {1}, {2}, {3}, {4}}), "");
  EXPECT_EQ(error_of({{0, 1}, {2, 3}}), "");
  EXPECT_EQ(error_of({{0}, {1, 2}}), "repeats: got blocks of 1 and of 2 nodes, wanted equal ones");
  EXPECT_EQ(error_of({{0}, {5}}),
            "repeats: got node 5, wanted nodes of the graph, each in one block");
  EXPECT_EQ(error_of({{-1}}), "repeats: got node -1, wanted nodes of the graph, each in one block");
  EXPECT_EQ(error_of({{2}, {2}}),
            "repeats: got node 2, wanted nodes of the graph, each in one block");
  EXPECT_EQ(error_of({{0}, {2}, {1}, {3}}),
            "repeats: got an edge between nodes 0 and 1, wanted edges within blocks, to the next "
            "one, and from elsewhere to the first or last");
  StrategyGraph dearer = Switches(5);
  dearer.nodes[3].cost[1] = 2;
  EXPECT_EQ(ValidateRepeats(ModelOf(dearer), {{.blocks = {{2}, {3}}}}).message(),
            "repeats: the costs of node 3 are not those of node 2");
  const Model six = ModelOf(Switches(6));
  EXPECT_EQ(ValidateRepeats(six, {{.blocks = {{0, 1}, {3, 2}, {4, 5}}}}).message(),
            "repeats: the edges of block 1 are not those of block 0; leave the repeats out, or "
            "give blocks that are equal");
}

}  // namespace
}  // namespace repeats_shapes_test_cc
}  // namespace orrery::transforms::strategies
