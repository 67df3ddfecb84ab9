#ifndef ORRERY_COST_MODELS_COLLECTIVES_GROUP_LAYOUT_H_
#define ORRERY_COST_MODELS_COLLECTIVES_GROUP_LAYOUT_H_

#include <cstdint>
#include <span>
#include <vector>

#include "cluster/topology.h"

// How a group of devices lies in a topology, as far as algorithms make use of it.

namespace orrery::cost_models {

/// Whether any two of every `a_node` consecutive devices (1: of all) have a link to each other. No
/// for more than 1,024.
bool AllLinked(const cluster::Topology& topology, std::span<const cluster::DeviceId> group,
               int32_t a_node);

/// Where the group is a box of a topology that is a grid, in the order of device numbers: the sides
/// of that box that are longer than 1, two at least. Else empty.
std::vector<int32_t> GridOf(const cluster::Topology& topology,
                            std::span<const cluster::DeviceId> group);

}  // namespace orrery::cost_models

#endif  // ORRERY_COST_MODELS_COLLECTIVES_GROUP_LAYOUT_H_
