#include "transforms/strategies/colored_graph.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace orrery::transforms::strategies {
namespace colored_graph_test_cc {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

// `layers` layers of a node that the next layer reads, and one that only it reads: nodes 2 k and
// 2 k + 1.
StrategyGraph Layers(int32_t layers) {
  StrategyGraph graph;
  for (int32_t layer = 0; layer < layers; ++layer) {
    graph.nodes.push_back({.name = "", .cost = {0, 1}, .memory = {}});
    graph.nodes.push_back({.name = "", .cost = {2, 0}, .memory = {}});
    graph.edges.push_back({.from = 2 * layer + 1, .to = 2 * layer, .cost = {0, 4, 5, 0}});
    if (layer == 0) continue;
    graph.edges.push_back({.from = 2 * layer - 2, .to = 2 * layer, .cost = {0, 3, 2, 0}});
  }
  return graph;
}

// Three rounds see three nodes far.
TEST(Colored, TellsNodesAtTheEndsFromOthers) {
  const ColoredGraph graph = Colored(ModelOf(Layers(10)));
  const auto class_of = [&](size_t node) {
    return graph.classes[static_cast<size_t>(graph.color[node])];
  };
  EXPECT_THAT(class_of(8), ElementsAre(6, 8, 10, 12));
  EXPECT_THAT(class_of(9), ElementsAre(5, 7, 9, 11, 13, 15));
  EXPECT_THAT(class_of(2), ElementsAre(2));
  EXPECT_EQ(graph.ClassSize(8), 4u);
}

TEST(Colored, SeesEdgesFromEitherEndAlike) {
  StrategyGraph turned = Layers(10);
  for (StrategyEdge& edge : turned.edges) {
    std::swap(edge.from, edge.to);
    std::swap(edge.cost[1], edge.cost[2]);
  }
  EXPECT_EQ(Colored(ModelOf(turned)).color, Colored(ModelOf(Layers(10))).color);
  // But not those that differ by which end is which.
  StrategyGraph other = Layers(10);
  std::swap(other.edges[9].cost[1], other.edges[9].cost[2]);
  EXPECT_NE(Colored(ModelOf(other)).color, Colored(ModelOf(Layers(10))).color);
  StrategyGraph minus = Layers(10);
  minus.nodes[8].cost[0] = -0.0;
  EXPECT_EQ(Colored(ModelOf(minus)).color, Colored(ModelOf(Layers(10))).color);
}

TEST(ChainOf, GoesFromLayerToLayer) {
  const ColoredGraph graph = Colored(ModelOf(Layers(10)));
  EXPECT_THAT(ChainOf(graph, graph.color[8]), ElementsAre(6, 8, 10, 12));
  // The way from nodes 5 and 15 leads over nodes that have no like, as what all layers share.
  EXPECT_THAT(ChainOf(graph, graph.color[9]), ElementsAre(7, 9, 11, 13));
  EXPECT_THAT(ChainOf(graph, graph.color[0]), IsEmpty());
}

TEST(ChainOf, IsEmptyOfARingAndOfAStar) {
  StrategyGraph ring = Layers(10);
  ring.edges.push_back({.from = 18, .to = 0, .cost = {0, 3, 2, 0}});
  ColoredGraph graph = Colored(ModelOf(ring));
  EXPECT_THAT(ChainOf(graph, graph.color[8]), IsEmpty());
  StrategyGraph star;
  star.nodes.assign(9, {.name = "", .cost = {0, 1}, .memory = {}});
  for (int32_t i = 1; i < 9; ++i) star.edges.push_back({.from = 0, .to = i, .cost = {0, 1, 2, 3}});
  graph = Colored(ModelOf(star));
  EXPECT_THAT(ChainOf(graph, graph.color[1]), IsEmpty());
}

TEST(NextInLayers, FollowsFromAChainToItsNeighbours) {
  const ColoredGraph graph = Colored(ModelOf(Layers(10)));
  const std::vector<int32_t> next = NextInLayers(graph, {6, 8, 10, 12});
  EXPECT_THAT(next, ElementsAre(-1, -1, -1, -1, -1, -1, 8, 9, 10, 11, 12, 13, -1, -1, -1, -1, -1,
                                -1, -1, -1));
}

}  // namespace
}  // namespace colored_graph_test_cc
}  // namespace orrery::transforms::strategies
