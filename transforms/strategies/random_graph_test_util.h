#ifndef ORRERY_TRANSFORMS_STRATEGIES_RANDOM_GRAPH_TEST_UTIL_H_
#define ORRERY_TRANSFORMS_STRATEGIES_RANDOM_GRAPH_TEST_UTIL_H_

#include <cstdint>
#include <random>
#include <utility>
#include <vector>

#include "transforms/strategies/strategy_graph.h"

// Graphs for tests, equal for equal seeds.

namespace orrery::transforms::strategies {

inline int32_t Draw(std::mt19937& random, int32_t low, int32_t high) {
  return low + static_cast<int32_t>(random() % static_cast<uint32_t>(high - low + 1));
}

inline void AddRandomNode(StrategyGraph& graph, int32_t strategies, std::mt19937& random) {
  StrategyNode node;
  for (int32_t a = 0; a < strategies; ++a) {
    node.cost.push_back(Draw(random, 0, 2000) / 100.0);
    node.memory.push_back(Draw(random, 0, 40));
  }
  graph.nodes.push_back(std::move(node));
}

/// Equal strategies meet at no cost; one other pair in `impossible`, if not 0, is impossible.
inline void AddRandomEdge(StrategyGraph& graph, int32_t from, int32_t to, int32_t impossible,
                          std::mt19937& random) {
  StrategyEdge edge{.from = from, .to = to, .cost = {}};
  const size_t rows = graph.nodes[static_cast<size_t>(from)].cost.size();
  const size_t columns = graph.nodes[static_cast<size_t>(to)].cost.size();
  for (size_t a = 0; a < rows; ++a) {
    for (size_t b = 0; b < columns; ++b) {
      const double cost = Draw(random, 0, 3000) / 100.0;
      const bool never = impossible > 0 && Draw(random, 1, impossible) == 1;
      edge.cost.push_back(a == b ? 0 : never ? kImpossible : cost);
    }
  }
  graph.edges.push_back(std::move(edge));
}

/// A graph of equal blocks, and which they are.
struct Repeated {
  StrategyGraph graph;
  SolveOptions options;
};

/// `count` blocks of 2 * `length` nodes after a node, and one more node after them. Where
/// `interleaved`, the blocks run there and back, as the layers of forward and backward do: the
/// second half of the first block comes last.
inline Repeated RandomBlocks(uint32_t seed, int32_t length, int32_t count, bool interleaved) {
  Repeated result;
  StrategyGraph& graph = result.graph;
  auto& blocks = result.options.repeats.emplace_back().blocks;
  blocks.resize(static_cast<size_t>(count));
  std::mt19937 outside(seed);
  AddRandomNode(graph, 3, outside);
  const auto add_nodes = [&](int32_t block, int32_t half) {
    std::mt19937 random(2 * seed + static_cast<uint32_t>(half));
    for (int32_t i = 0; i < length; ++i) {
      blocks[static_cast<size_t>(block)].push_back(static_cast<int32_t>(graph.nodes.size()));
      AddRandomNode(graph, Draw(random, 1, 4), random);
    }
  };
  for (int32_t k = 0; k < count; ++k) {
    add_nodes(k, 0);
    if (!interleaved) add_nodes(k, 1);
  }
  for (int32_t k = count; interleaved && k > 0; --k) add_nodes(k - 1, 1);
  AddRandomNode(graph, 3, outside);
  const auto connect = [&](int32_t from_block, int32_t to_block, uint32_t stream) {
    std::mt19937 random(seed + stream);
    for (int32_t edges = 0; edges < (stream == 1 ? 2 * length : 3); ++edges) {
      const auto a = static_cast<size_t>(Draw(random, 0, 2 * length - 1));
      auto b = static_cast<size_t>(Draw(random, 0, 2 * length - 1));
      // Few of the next block's nodes, or the boundary grows large.
      if (from_block != to_block) b = b % 2 == 0 ? 0 : static_cast<size_t>(2 * length - 1);
      const int32_t from = blocks[static_cast<size_t>(from_block)][a];
      const int32_t to = blocks[static_cast<size_t>(to_block)][b];
      if (from != to) AddRandomEdge(graph, from, to, 7, random);
    }
  };
  for (int32_t k = 0; k < count; ++k) {
    connect(k, k, 1);
    if (k + 1 < count) connect(k, k + 1, 2);
  }
  AddRandomEdge(graph, 0, blocks.front()[0], 0, outside);
  AddRandomEdge(graph, blocks.back().back(), static_cast<int32_t>(graph.nodes.size()) - 1, 0,
                outside);
  AddRandomEdge(graph, 0, static_cast<int32_t>(graph.nodes.size()) - 1, 0, outside);
  return result;
}

}  // namespace orrery::transforms::strategies

#endif  // ORRERY_TRANSFORMS_STRATEGIES_RANDOM_GRAPH_TEST_UTIL_H_
