#ifndef ORRERY_TRANSFORMS_STRATEGIES_RANDOM_GRAPH_TEST_UTIL_H_
#define ORRERY_TRANSFORMS_STRATEGIES_RANDOM_GRAPH_TEST_UTIL_H_

#include <cstdint>
#include <random>
#include <utility>

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

}  // namespace orrery::transforms::strategies

#endif  // ORRERY_TRANSFORMS_STRATEGIES_RANDOM_GRAPH_TEST_UTIL_H_
