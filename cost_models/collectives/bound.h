#ifndef ORRERY_COST_MODELS_COLLECTIVES_BOUND_H_
#define ORRERY_COST_MODELS_COLLECTIVES_BOUND_H_

#include <optional>
#include <span>

#include "cluster/topology.h"
#include "cost_models/collectives/collective_kind.h"
#include "support/units.h"

namespace orrery::cost_models {

/// Which switches reduce: those that join the ranks of a node, and those between nodes.
struct InNetwork {
  bool in_nodes = false;
  bool between = false;
};

/// No algorithm is faster: the bytes that the ranks must send at least over all links by which they
/// send to each other, and likewise of the nodes (`ranks_a_node` consecutive ranks each) over the
/// links by which they leave. An all-reduce need send its tensor only once where
/// switches on the way reduce. On an explicit graph, likewise of other sets of ranks
/// (graph_bound.h). Without latencies. Nothing for more than 2,048 ranks.
std::optional<Duration> BandwidthBound(CollectiveKind kind, Bytes size,
                                       std::span<const cluster::DeviceId> group,
                                       int32_t ranks_a_node, InNetwork in_network,
                                       const cluster::Topology& topology);

}  // namespace orrery::cost_models

#endif  // ORRERY_COST_MODELS_COLLECTIVES_BOUND_H_
