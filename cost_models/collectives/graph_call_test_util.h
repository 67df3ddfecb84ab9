#ifndef ORRERY_COST_MODELS_COLLECTIVES_GRAPH_CALL_TEST_UTIL_H_
#define ORRERY_COST_MODELS_COLLECTIVES_GRAPH_CALL_TEST_UTIL_H_

#include <map>
#include <random>
#include <vector>

#include "cluster/random_graph_test_util.h"
#include "cost_models/collectives/choice.h"

// For tests of what holds of every algorithm: calls for those that want an explicit graph.

namespace orrery::cost_models {

/// Whether the algorithm is for explicit graphs alone. Such a graph is nothing to the others.
inline bool LaysTrees(const CollectiveAlgorithm& algorithm) {
  return algorithm.name == "packed-trees" || algorithm.name == "shortest-path-tree";
}

/// A collective of all devices of a random connected graph, the same every time.
inline CollectiveCall GraphCall(CollectiveKind kind, int32_t ranks, Bytes size) {
  static auto& graphs = *new std::map<int32_t, cluster::Topology>;
  auto found = graphs.find(ranks);
  if (found == graphs.end()) {
    std::mt19937 random(static_cast<uint32_t>(ranks));
    found = graphs.emplace(ranks, cluster::RandomGraph(ranks, ranks, random)).first;
  }
  const std::vector<cluster::DeviceId> group = cluster::AllDevices(found->second);
  return MakeCall({.kind = kind, .size = size, .group = group}, found->second);
}

}  // namespace orrery::cost_models

#endif  // ORRERY_COST_MODELS_COLLECTIVES_GRAPH_CALL_TEST_UTIL_H_
