#include "cost_models/collectives/laid_trees.h"

// One spanning tree along the links of an explicit graph, from the rank that is nearest to all
// others, in which each rank is as near to the root as it can be: for short messages.

namespace orrery::cost_models {
namespace shortest_path_tree_cc {
namespace {

bool Supports(const CollectiveCall& call) {
  return call.laid.shortest != nullptr && !call.laid.shortest->trees.empty();
}

Rounds Emit(const CollectiveCall& call) { return TreeRounds(call, *call.laid.shortest); }

}  // namespace
}  // namespace shortest_path_tree_cc

extern const CollectiveAlgorithm kShortestPathTreeCollective = {
    .name = "shortest-path-tree",
    .summary =
        "one spanning tree laid along the links of an explicit graph, each rank as near to the "
        "root as it can be",
    .source = "breadth-first trees, as NCCL's search lays trees over nodes (2.4)",
    .kinds = {CollectiveKind::kAllReduce, CollectiveKind::kBroadcast, CollectiveKind::kReduce,
              CollectiveKind::kBarrier},
    .chosen = {CollectiveKind::kAllReduce, CollectiveKind::kBroadcast, CollectiveKind::kReduce,
               CollectiveKind::kBarrier},
    .supports = shortest_path_tree_cc::Supports,
    .wanted = "devices of an explicit graph, few enough to lay trees over",
    .rounds = shortest_path_tree_cc::Emit,
};

}  // namespace orrery::cost_models
