#ifndef ORRERY_COST_MODELS_COLLECTIVES_GRAPH_BOUND_H_
#define ORRERY_COST_MODELS_COLLECTIVES_GRAPH_BOUND_H_

#include <span>

#include "cluster/topology.h"
#include "cost_models/collectives/collective_kind.h"
#include "support/units.h"

namespace orrery::cost_models {

/// BandwidthBound on an explicit graph. Whatever parts the vertices are cut into, what each part
/// must send and receive passes over the links out of it and into it, and what all parts must send
/// to each other over the links between them: of k parts of an all-reduce, 2 (k - 1) times the
/// tensor. Of all ways to cut, it looks at those along the links that packed trees load most, where
/// the weakest are (cluster/spanning_trees.h). Requires a topology that is an explicit graph.
Duration GraphBandwidthBound(CollectiveKind kind, Bytes size,
                             std::span<const cluster::DeviceId> group, bool in_network,
                             const cluster::Topology& topology);

}  // namespace orrery::cost_models

#endif  // ORRERY_COST_MODELS_COLLECTIVES_GRAPH_BOUND_H_
