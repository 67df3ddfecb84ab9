#include "cost_models/collectives/laid_trees.h"

// Many spanning trees along the links of an explicit graph, each where the others load it least
// (cluster/spanning_trees.h), so that all links carry what they can.

namespace orrery::cost_models {
namespace packed_trees_cc {
namespace {

bool Supports(const CollectiveCall& call) {
  return call.laid.packed != nullptr && !call.laid.packed->trees.empty();
}

Rounds Emit(const CollectiveCall& call) { return TreeRounds(call, *call.laid.packed); }

}  // namespace
}  // namespace packed_trees_cc

extern const CollectiveAlgorithm kPackedTreesCollective = {
    .name = "packed-trees",
    .summary =
        "many spanning trees laid along the links of an explicit graph, equal shares of the data "
        "in chunks on each, so that links are equally busy",
    .source = "Wang et al., Blink, 2020; Zhao et al., ForestColl, 2024; Thorup 2007",
    .kinds = {CollectiveKind::kAllReduce, CollectiveKind::kReduceScatter,
              CollectiveKind::kAllGather, CollectiveKind::kBroadcast, CollectiveKind::kReduce},
    .chosen = {CollectiveKind::kAllReduce, CollectiveKind::kReduceScatter,
               CollectiveKind::kAllGather, CollectiveKind::kBroadcast, CollectiveKind::kReduce},
    .supports = packed_trees_cc::Supports,
    .wanted = "devices of an explicit graph, few enough to lay trees over",
    .rounds = packed_trees_cc::Emit,
};

}  // namespace orrery::cost_models
