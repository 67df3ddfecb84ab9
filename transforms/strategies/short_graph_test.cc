#include "transforms/strategies/short_graph.h"

#include <gtest/gtest.h>

#include <random>

#include "transforms/strategies/random_graph_test_util.h"

namespace orrery::transforms::strategies {
namespace short_graph_test_cc {
namespace {

// The choice for a graph by way of the short one.
std::optional<std::vector<int32_t>> ChooseShort(const Repeated& of) {
  const ShortGraph shorter(of.graph.nodes.size(), of.options.repeats);
  const std::optional<StrategyGraph> graph = shorter.Of(of.graph);
  if (!graph.has_value()) return std::nullopt;
  const auto choice = SolveStrategies(*graph, {.repeats = shorter.repeats()});
  if (!choice.ok() || choice->none.has_value()) return std::nullopt;
  return shorter.Expand(*choice);
}

TEST(ShortGraph, StandsForAllBlocks) {
  int chosen = 0;
  for (uint32_t seed = 0; seed < 200; ++seed) {
    SCOPED_TRACE(seed);
    const auto length = 1 + static_cast<int32_t>(seed % 4);
    const Repeated of =
        RandomBlocks(seed, length, 5 + static_cast<int32_t>(seed % 9), seed % 3 == 0);
    const ShortGraph shorter(of.graph.nodes.size(), of.options.repeats);
    EXPECT_TRUE(shorter.is_shorter());
    ASSERT_TRUE(shorter.Of(of.graph).has_value());
    EXPECT_EQ(std::ssize(shorter.Of(of.graph)->nodes), 2 + 3 * 2 * length);
    const StrategyChoice whole = SolveStrategies(of.graph).value();
    const auto choice = ChooseShort(of);
    ASSERT_EQ(choice.has_value(), !whole.none.has_value());
    if (!choice.has_value()) continue;
    EXPECT_NEAR(CostOf(of.graph, *choice), whole.cost, 1e-9);
    ++chosen;
  }
  EXPECT_GT(chosen, 100);
}

TEST(ShortGraph, OfFewBlocksIsTheWhole) {
  const Repeated of = RandomBlocks(1, 2, 4, false);
  EXPECT_FALSE(ShortGraph(of.graph.nodes.size(), of.options.repeats).is_shorter());
}

// As the tables that all layers read: one choice of them is never dearer than another.
Repeated WithShared(uint32_t seed) {
  Repeated of = RandomBlocks(seed, 2, 8, false);
  const auto shared = static_cast<int32_t>(of.graph.nodes.size());
  of.graph.nodes.push_back({.name = "table", .cost = {0, 1}, .memory = {}});
  for (const std::vector<int32_t>& block : of.options.repeats[0].blocks) {
    StrategyEdge& edge =
        of.graph.edges.emplace_back(StrategyEdge{.from = shared, .to = block[0], .cost = {}});
    const size_t columns = of.graph.nodes[static_cast<size_t>(block[0])].cost.size();
    for (size_t i = 0; i < columns; ++i) edge.cost.push_back(static_cast<double>(i) / 8);
    for (size_t i = 0; i < columns; ++i) edge.cost.push_back(1 + static_cast<double>(i) / 8);
  }
  return of;
}

TEST(ShortGraph, HasWhatAllBlocksShare) {
  for (uint32_t seed = 0; seed < 20; ++seed) {
    SCOPED_TRACE(seed);
    const Repeated of = WithShared(seed);
    const StrategyChoice whole = SolveStrategies(of.graph).value();
    const auto choice = ChooseShort(of);
    ASSERT_EQ(choice.has_value(), !whole.none.has_value());
    if (!choice.has_value()) continue;
    EXPECT_NEAR(CostOf(of.graph, *choice), whole.cost, 1e-9);
  }
}

TEST(ShortGraph, HasTwoRunsOfBlocks) {
  const Repeated first = RandomBlocks(1, 2, 6, false), second = RandomBlocks(2, 3, 9, false);
  Repeated both = first;
  const auto shift = static_cast<int32_t>(first.graph.nodes.size());
  both.graph.nodes.insert(both.graph.nodes.end(), second.graph.nodes.begin(),
                          second.graph.nodes.end());
  const auto add = [&](StrategyEdge edge) {
    edge.from += shift;
    edge.to += shift;
    both.graph.edges.push_back(edge);
  };
  for (const StrategyEdge& edge : second.graph.edges) add(edge);
  RepeatedBlocks moved = second.options.repeats[0];
  for (auto& block : moved.blocks) {
    for (int32_t& node : block) node += shift;
  }
  both.options.repeats.push_back(moved);
  std::mt19937 random(5);
  AddRandomEdge(both.graph, shift - 1, shift, 0, random);
  const auto choice = ChooseShort(both);
  ASSERT_TRUE(choice.has_value());
  EXPECT_NEAR(CostOf(both.graph, *choice), SolveStrategies(both.graph).value().cost, 1e-9);
  // Blocks of one run do not meet inner ones of the other.
  AddRandomEdge(both.graph, first.options.repeats[0].blocks[3][0], moved.blocks[0][0], 0, random);
  EXPECT_FALSE(ChooseShort(both).has_value());
}

// Each place where one block may be unlike the others.
TEST(ShortGraph, IsOfEqualBlocksAlone) {
  const Repeated of = WithShared(4);
  ASSERT_TRUE(ChooseShort(of).has_value());
  const auto& blocks = of.options.repeats[0].blocks;
  const auto touches = [](const StrategyEdge& edge, int32_t a, int32_t b) {
    return (edge.from == a && edge.to == b) || (edge.from == b && edge.to == a);
  };
  for (const size_t block : {size_t{1}, size_t{4}, blocks.size() - 1}) {
    SCOPED_TRACE(block);
    Repeated bad = of;
    bad.graph.nodes[static_cast<size_t>(blocks[block][1])].cost[0] += 1;
    EXPECT_FALSE(ChooseShort(bad).has_value()) << "a node";
    bad = of;
    std::mt19937 random(1);
    AddRandomEdge(bad.graph, blocks[block][0], blocks[block][1], 0, random);
    EXPECT_FALSE(ChooseShort(bad).has_value()) << "one more edge";
    int changed = 0;
    for (size_t e = 0; e < of.graph.edges.size(); ++e) {
      for (const int32_t node : blocks[block]) {
        for (const int32_t before : blocks[block - 1]) {
          if (!touches(of.graph.edges[e], node, before)) continue;
          bad = of;
          bad.graph.edges[e].cost.back() += 1;
          EXPECT_FALSE(ChooseShort(bad).has_value()) << "edge " << e << " to the next block";
          ++changed;
        }
      }
    }
    EXPECT_GT(changed, 0);
  }
  const auto shared = static_cast<int32_t>(of.graph.nodes.size()) - 1;
  for (size_t e = 0; e < of.graph.edges.size(); ++e) {
    if (!touches(of.graph.edges[e], shared, blocks[5][0])) continue;
    Repeated bad = of;
    bad.graph.edges[e].cost.back() += 1;
    EXPECT_FALSE(ChooseShort(bad).has_value()) << "what is shared";
    bad.graph.edges.erase(bad.graph.edges.begin() + static_cast<std::ptrdiff_t>(e));
    EXPECT_FALSE(ChooseShort(bad).has_value()) << "what is shared, not by all";
  }
  Repeated bad = of;
  std::mt19937 random(1);
  AddRandomEdge(bad.graph, blocks[1][0], blocks[3][0], 0, random);
  EXPECT_FALSE(ChooseShort(bad).has_value()) << "beyond the next";
  bad = of;
  bad.graph.live_sets.push_back({.name = "all", .nodes = {0}});
  EXPECT_FALSE(ChooseShort(bad).has_value()) << "limits of memory";
}

// Blocks that stand for others are composed, or nothing is said of them.
TEST(ShortGraph, IsNotSolvedOneByOne) {
  const Repeated of = RandomBlocks(3, 2, 8, false);
  const ShortGraph shorter(of.graph.nodes.size(), of.options.repeats);
  SolveOptions options{.repeats = shorter.repeats()};
  options.repeats[0].blocks.erase(options.repeats[0].blocks.begin() + 1);
  const auto choice = SolveStrategies(*shorter.Of(of.graph), options);
  EXPECT_FALSE(choice.ok());
}

}  // namespace
}  // namespace short_graph_test_cc
}  // namespace orrery::transforms::strategies
