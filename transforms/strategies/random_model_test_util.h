#ifndef ORRERY_TRANSFORMS_STRATEGIES_RANDOM_MODEL_TEST_UTIL_H_
#define ORRERY_TRANSFORMS_STRATEGIES_RANDOM_MODEL_TEST_UTIL_H_

#include <algorithm>
#include <cstdint>
#include <random>
#include <vector>

#include "transforms/strategies/model.h"
#include "transforms/strategies/random_graph_test_util.h"

// Models for tests, equal for equal seeds, and what enumeration says of them.

namespace orrery::transforms::strategies {

/// Half of all pairs of nodes have a table; one limit holds all nodes.
inline Model RandomModel(uint32_t seed, int32_t nodes, int32_t impossible) {
  std::mt19937 random(seed);
  StrategyGraph graph;
  for (int32_t i = 0; i < nodes; ++i) {
    AddRandomNode(graph, Draw(random, 2, 4), random);
    for (int32_t j = 0; j < i; ++j) {
      if (Draw(random, 0, 1) == 1) AddRandomEdge(graph, j, i, impossible, random);
    }
  }
  LiveSet live{.name = "all", .nodes = {}, .budget = 20.0 * nodes};
  for (int32_t i = 0; i < nodes; ++i) live.nodes.push_back(i);
  graph.live_sets.push_back(live);
  return ModelOf(graph);
}

/// Calls visit(choice) for all choices.
template <typename Visit>
void ForEachChoice(const Model& model, const Visit& visit) {
  std::vector<int32_t> choice(model.nodes());
  while (true) {
    visit(choice);
    size_t i = 0;
    while (i < choice.size() &&
           ++choice[i] == static_cast<int32_t>(model.strategies(static_cast<int32_t>(i)))) {
      choice[i++] = 0;
    }
    if (i == choice.size()) return;
  }
}

/// The cost of the cheapest choice; `fitting`: of those within the limits.
inline double LeastCost(const Model& model, bool fitting) {
  double least = kImpossible;
  ForEachChoice(model, [&](const std::vector<int32_t>& choice) {
    if (!fitting || Fits(model, choice)) least = std::min(least, CostOf(model, choice));
  });
  return least;
}

}  // namespace orrery::transforms::strategies

#endif  // ORRERY_TRANSFORMS_STRATEGIES_RANDOM_MODEL_TEST_UTIL_H_
