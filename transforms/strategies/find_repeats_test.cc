#include "transforms/strategies/find_repeats.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <set>
#include <string>
#include <utility>

#include "transforms/strategies/random_graph_test_util.h"

namespace orrery::transforms::strategies {
namespace find_repeats_test_cc {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

size_t At(int32_t number) { return static_cast<size_t>(number); }

// The same graph with other numbers for its nodes, and edges in another order, some turned round.
StrategyGraph Shuffled(const StrategyGraph& graph, uint32_t seed) {
  std::mt19937 random(seed);
  const auto shuffle = [&](auto& list) {
    for (size_t i = list.size(); i > 1; --i) std::swap(list[i - 1], list[random() % i]);
  };
  std::vector<int32_t> order(graph.nodes.size());
  std::iota(order.begin(), order.end(), 0);
  shuffle(order);
  StrategyGraph result;
  std::vector<int32_t> number(order.size());
  for (size_t i = 0; i < order.size(); ++i) {
    number[At(order[i])] = static_cast<int32_t>(i);
    result.nodes.push_back(graph.nodes[At(order[i])]);
  }
  for (const StrategyEdge& edge : graph.edges) {
    StrategyEdge& added = result.edges.emplace_back(edge);
    added.from = number[At(edge.from)];
    added.to = number[At(edge.to)];
    if (random() % 2 == 0) continue;
    std::swap(added.from, added.to);
    const size_t rows = graph.nodes[At(edge.from)].cost.size();
    const size_t columns = graph.nodes[At(edge.to)].cost.size();
    for (size_t i = 0; i < edge.cost.size(); ++i) {
      added.cost[i % columns * rows + i / columns] = edge.cost[i];
    }
  }
  shuffle(result.edges);
  return result;
}

void ExpectSameCost(const StrategyGraph& graph, const std::vector<RepeatedBlocks>& repeats) {
  const StrategyChoice flat = SolveStrategies(graph).value();
  const auto composed = SolveStrategies(graph, {.repeats = repeats});
  ASSERT_TRUE(composed.ok()) << composed.status();
  ASSERT_EQ(composed->none.has_value(), flat.none.has_value());
  if (flat.none.has_value()) return;
  EXPECT_NEAR(composed->cost, flat.cost, 1e-9);
  EXPECT_DOUBLE_EQ(composed->cost, CostOf(graph, composed->assignment));
  EXPECT_TRUE(composed->optimal());
  size_t blocks = 0;
  for (const RepeatedBlocks& repeat : repeats) blocks += repeat.blocks.size();
  EXPECT_EQ(composed->composed, static_cast<int64_t>(blocks));
}

// Names are numbers of layers; nodes of none are named "-". From a block to the next, each node
// goes one layer on, or each one back.
void ExpectOneLayerOn(const StrategyGraph& graph, const RepeatedBlocks& repeat) {
  const auto layer = [&](int32_t node) { return std::stoi(graph.nodes[At(node)].name); };
  const int step = layer(repeat.blocks[1][0]) - layer(repeat.blocks[0][0]);
  EXPECT_EQ(step * step, 1);
  for (size_t block = 1; block < repeat.blocks.size(); ++block) {
    for (size_t i = 0; i < repeat.blocks[block].size(); ++i) {
      EXPECT_EQ(layer(repeat.blocks[block][i]) - layer(repeat.blocks[block - 1][i]), step);
    }
  }
}

// The choices of the nodes of a block that the one before touches.
size_t BoundaryChoices(const StrategyGraph& graph, const RepeatedBlocks& repeat) {
  const std::set<int32_t> first(repeat.blocks[0].begin(), repeat.blocks[0].end());
  const std::set<int32_t> second(repeat.blocks[1].begin(), repeat.blocks[1].end());
  std::set<int32_t> boundary;
  for (const StrategyEdge& edge : graph.edges) {
    if (first.contains(edge.from) && second.contains(edge.to)) boundary.insert(edge.to);
    if (first.contains(edge.to) && second.contains(edge.from)) boundary.insert(edge.from);
  }
  size_t choices = 1;
  for (const int32_t node : boundary) choices *= graph.nodes[At(node)].cost.size();
  return choices;
}

// A node before `layers` layers of a forward and a backward half, and one after. A layer reads only
// the first node of the next one's forward half, and the last one's of its backward half. Those two
// have the fewest strategies, so blocks begin with them.
StrategyGraph RandomStep(uint32_t seed, int32_t layers, int32_t half) {
  StrategyGraph graph;
  std::mt19937 ends(seed);
  const auto add_half = [&](int32_t layer, uint32_t stream) {
    std::mt19937 random(2 * seed + stream);
    const auto first = static_cast<int32_t>(graph.nodes.size());
    for (int32_t i = 0; i < half; ++i) {
      const bool boundary = i == (stream == 0 ? 0 : half - 1);
      AddRandomNode(graph, boundary ? 2 : Draw(random, 5, 6), random);
      graph.nodes.back().name = std::to_string(layer);
      if (i > 0) AddRandomEdge(graph, first + i - 1, first + i, 7, random);
    }
    return first;
  };
  AddRandomNode(graph, 3, ends);
  std::vector<int32_t> forward, backward(At(layers));
  for (int32_t layer = 0; layer < layers; ++layer) forward.push_back(add_half(layer, 0));
  for (int32_t layer = layers; layer-- > 0;) backward[At(layer)] = add_half(layer, 1);
  AddRandomNode(graph, 3, ends);
  graph.nodes.front().name = graph.nodes.back().name = "-";
  for (int32_t layer = 0; layer < layers; ++layer) {
    std::mt19937 random(seed + 77);
    const int32_t there = forward[At(layer)], back = backward[At(layer)];
    for (int32_t i = 0; i < half; ++i) {
      AddRandomEdge(graph, there + i, back + half - 1 - i, 0, random);
    }
    if (layer + 1 == layers) continue;
    AddRandomEdge(graph, there + half - 1, forward[At(layer + 1)], 9, random);
    AddRandomEdge(graph, backward[At(layer + 1)] + half - 1, back, 9, random);
  }
  const auto last = static_cast<int32_t>(graph.nodes.size()) - 1;
  AddRandomEdge(graph, 0, forward[0], 0, ends);
  AddRandomEdge(graph, forward.back() + half - 1, last, 0, ends);
  AddRandomEdge(graph, last, backward.back(), 0, ends);
  AddRandomEdge(graph, 0, last, 0, ends);
  return graph;
}

TEST(FindRepeats, FindsTheLayersOfRandomSteps) {
  for (uint32_t seed = 0; seed < 60; ++seed) {
    SCOPED_TRACE(seed);
    const int32_t layers = 9 + static_cast<int32_t>(seed % 5);
    const StrategyGraph step = RandomStep(seed, layers, 2 + static_cast<int32_t>(seed % 6));
    const size_t size = (step.nodes.size() - 2) / At(layers);
    for (const StrategyGraph& graph : {step, Shuffled(step, seed)}) {
      const std::vector<RepeatedBlocks> repeats = FindRepeats(graph);
      ASSERT_THAT(repeats, SizeIs(1));
      // Three rounds of colors, and one layer into the next at each end.
      EXPECT_GE(repeats[0].blocks.size(), At(layers) - 6);
      EXPECT_THAT(repeats[0].blocks[0], SizeIs(size));
      ExpectOneLayerOn(graph, repeats[0]);
      EXPECT_EQ(BoundaryChoices(graph, repeats[0]), 4u);
      ExpectSameCost(graph, repeats);
    }
  }
}

// Of few layers, what is found is right, or nothing.
TEST(FindRepeats, IsRightForFewLayers) {
  for (uint32_t seed = 0; seed < 60; ++seed) {
    SCOPED_TRACE(seed);
    const StrategyGraph step = RandomStep(seed, 1 + static_cast<int32_t>(seed % 8), 3);
    const StrategyGraph graph = Shuffled(step, seed);
    ExpectSameCost(graph, FindRepeats(graph));
  }
}

// Costs of 0 and 1, and edges of one kind: nodes look alike that are not.
TEST(FindRepeats, IsRightWhereAllLooksAlike) {
  int found = 0;
  for (uint32_t seed = 0; seed < 300; ++seed) {
    SCOPED_TRACE(seed);
    const int32_t layers = 3 + static_cast<int32_t>(seed % 12);
    StrategyGraph graph;
    for (int32_t layer = 0; layer < layers; ++layer) {
      std::mt19937 random(seed);
      const int32_t size = Draw(random, 1, 5), first = layer * size;
      for (int32_t i = 0; i < size; ++i) {
        graph.nodes.push_back({.name = "", .cost = {0, 1.0 * Draw(random, 0, 1)}, .memory = {}});
        for (int32_t k = 0; k < i; ++k) {
          if (Draw(random, 0, 1) == 0) continue;
          graph.edges.push_back({.from = first + k, .to = first + i, .cost = {0, 3, 3, 0}});
        }
      }
      for (int32_t edges = Draw(random, 1, 3); layer > 0 && edges > 0; --edges) {
        graph.edges.push_back({.from = first - size + Draw(random, 0, size - 1),
                               .to = first + Draw(random, 0, size - 1),
                               .cost = {1, 0, 3, 0}});
      }
    }
    graph = Shuffled(graph, seed);
    const std::vector<RepeatedBlocks> repeats = FindRepeats(graph);
    found += repeats.empty() ? 0 : 1;
    ExpectSameCost(graph, repeats);
  }
  EXPECT_GE(found, 60);
}

// `count` nodes one after another; a change costs 3.
StrategyGraph Switches(int32_t count) {
  StrategyGraph graph;
  for (int32_t i = 0; i < count; ++i) {
    graph.nodes.push_back({.name = "", .cost = {0, 1}, .memory = {}});
    if (i > 0) graph.edges.push_back({.from = i - 1, .to = i, .cost = {0, 3, 2, 0}});
  }
  return graph;
}

// By hand: colors tell the three nodes at each end of a chain from the others.
TEST(FindRepeats, FindsBlocksOfOneNode) {
  const std::vector<RepeatedBlocks> repeats = FindRepeats(Switches(10));
  ASSERT_THAT(repeats, SizeIs(1));
  EXPECT_THAT(repeats[0].blocks,
              ElementsAre(ElementsAre(3), ElementsAre(4), ElementsAre(5), ElementsAre(6)));
  EXPECT_THAT(FindRepeats(Switches(8)), IsEmpty());
}

TEST(FindRepeats, FindsNothingWhereThereIsNothing) {
  EXPECT_THAT(FindRepeats({}), IsEmpty());
  StrategyGraph apart;
  for (int32_t i = 0; i < 9; ++i) apart.nodes.push_back({.name = "", .cost = {0, 1}, .memory = {}});
  EXPECT_THAT(FindRepeats(apart), IsEmpty());
  StrategyGraph ring = Switches(12);
  ring.edges.push_back({.from = 11, .to = 0, .cost = {0, 3, 2, 0}});
  EXPECT_THAT(FindRepeats(ring), IsEmpty());
  std::mt19937 random(1);
  StrategyGraph any;
  for (int32_t i = 0; i < 40; ++i) {
    AddRandomNode(any, 3, random);
    for (int32_t edges = 0; edges < 3 && i > 0; ++edges) {
      AddRandomEdge(any, Draw(random, 0, i - 1), i, 0, random);
    }
  }
  EXPECT_THAT(FindRepeats(any), IsEmpty());
}

// A layer in the middle that costs more leaves the longer run of those beside it.
TEST(FindRepeats, DoesWithoutALayerThatDiffers) {
  StrategyGraph graph = RandomStep(5, 30, 4);
  for (StrategyNode& node : graph.nodes) {
    if (node.name == "10") node.cost[0] += 1;
  }
  const std::vector<RepeatedBlocks> repeats = FindRepeats(graph);
  ASSERT_THAT(repeats, SizeIs(1));
  for (const auto& block : repeats[0].blocks) {
    for (const int32_t node : block) EXPECT_GT(std::stoi(graph.nodes[At(node)].name), 10);
  }
  ExpectSameCost(graph, repeats);
}

// Encoder and decoder.
TEST(FindRepeats, FindsTwoRuns) {
  StrategyGraph graph = RandomStep(1, 12, 3);
  const StrategyGraph second = RandomStep(2, 14, 4);
  const auto shift = static_cast<int32_t>(graph.nodes.size());
  graph.nodes.insert(graph.nodes.end(), second.nodes.begin(), second.nodes.end());
  for (StrategyEdge edge : second.edges) {
    edge.from += shift;
    edge.to += shift;
    graph.edges.push_back(std::move(edge));
  }
  std::mt19937 random(5);
  AddRandomEdge(graph, shift - 1, shift, 0, random);
  graph = Shuffled(graph, 3);
  const std::vector<RepeatedBlocks> repeats = FindRepeats(graph);
  EXPECT_THAT(repeats, SizeIs(2));
  ExpectSameCost(graph, repeats);
}

// Three nodes of each layer that nothing tells apart, as queries, keys and values.
TEST(FindRepeats, TakesOneOfThoseThatAreAlike) {
  StrategyGraph graph = Switches(20);
  for (int32_t layer = 0; layer < 20; ++layer) {
    for (int32_t i = 0; i < 3; ++i) {
      const auto node = static_cast<int32_t>(graph.nodes.size());
      for (int32_t k = 0; k < 2; ++k) {
        graph.nodes.push_back({.name = "", .cost = {2.0 - k, 0}, .memory = {}});
      }
      graph.edges.push_back({.from = layer, .to = node, .cost = {0, 1, 4, 0}});
      graph.edges.push_back({.from = node, .to = node + 1, .cost = {0, 5, 6, 0}});
    }
  }
  graph = Shuffled(graph, 8);
  const std::vector<RepeatedBlocks> repeats = FindRepeats(graph);
  ASSERT_THAT(repeats, SizeIs(1));
  EXPECT_THAT(repeats[0].blocks[0], SizeIs(7));
  std::set<int32_t> all;
  for (const auto& block : repeats[0].blocks) all.insert(block.begin(), block.end());
  EXPECT_THAT(all, SizeIs(7 * repeats[0].blocks.size()));
  ExpectSameCost(graph, repeats);
}

// Tables that all layers read: with a strategy that suits all, and without.
TEST(FindRepeats, LeavesOutWhatAllLayersShare) {
  for (const bool suits_all : {true, false}) {
    StrategyGraph graph = RandomStep(3, 14, 3);
    const size_t nodes = graph.nodes.size();
    graph.nodes.push_back({.name = "-", .cost = {0, 0}, .memory = {}});
    if (!suits_all) graph.nodes.back().cost = {4, 0};
    std::mt19937 random(9);
    for (size_t i = 1; i + 1 < nodes; ++i) {
      if (graph.nodes[i].cost.size() != 2) continue;
      graph.edges.push_back({.from = static_cast<int32_t>(nodes),
                             .to = static_cast<int32_t>(i),
                             .cost = {0, 1, 2, 1}});
    }
    graph = Shuffled(graph, 4);
    const std::vector<RepeatedBlocks> repeats = FindRepeats(graph);
    EXPECT_THAT(repeats, SizeIs(suits_all ? 1 : 0));
    ExpectSameCost(graph, repeats);
  }
}

}  // namespace
}  // namespace find_repeats_test_cc
}  // namespace orrery::transforms::strategies
