#ifndef ORRERY_COST_MODELS_COLLECTIVES_ROUTES_H_
#define ORRERY_COST_MODELS_COLLECTIVES_ROUTES_H_

#include <span>
#include <vector>

#include "cluster/topology.h"
#include "cost_models/collectives/rounds.h"

namespace orrery::cost_models {

/// The switch in the middle of the route from one device to another; invalid when there is none.
cluster::VertexId MiddleSwitch(const cluster::Topology& topology, cluster::DeviceId from,
                               cluster::DeviceId to);

/// Appends the links that `transfer` takes when rank r is device r of `group`. From or to a hub,
/// those up to the middle of the route between two ranks that meet there, or from it on. Requires
/// that the two are different.
void AppendTransferRoute(const cluster::Topology& topology,
                         std::span<const cluster::DeviceId> group, int32_t ranks_a_node,
                         const Transfer& transfer, std::vector<cluster::LinkNumber>& route);

}  // namespace orrery::cost_models

#endif  // ORRERY_COST_MODELS_COLLECTIVES_ROUTES_H_
