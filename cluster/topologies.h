#ifndef ORRERY_CLUSTER_TOPOLOGIES_H_
#define ORRERY_CLUSTER_TOPOLOGIES_H_

#include <cstdint>
#include <vector>

#include "cluster/topology.h"

// The records of all topologies by name, as topologies.def lists them, and what several of them
// check. A topology's file includes this, so that its record has the linkage and the name that the
// list says.

namespace orrery::cluster {

#define ORRERY_TOPOLOGY(Name, file) extern const TopologyKind k##Name##Topology;
#include "cluster/topologies.def"
#undef ORRERY_TOPOLOGY

/// "got a nic of 0 bytes/s; wanted a positive rate", unless it has one.
absl::Status CheckRate(absl::string_view what, const PathInfo& speed);

/// That the devices are a whole number of nodes.
absl::Status CheckWholeNodes(const TopologyShape& shape);

/// That there are levels, that each has a positive rate where it has links, and that there are as
/// many devices as the product of their sizes.
absl::Status CheckLevels(const TopologyShape& shape);

/// Devices from `begin` to before `end`.
struct DeviceRange {
  int64_t begin = 0;
  int64_t end = 0;
};

/// Appends the devices of `outer` but for those of `inner`, which lies in it, one set on each side.
void AppendAround(DeviceRange outer, DeviceRange inner, std::vector<DeviceSet>& sets);

/// Appends the devices of `range` whose number leaves `rest` when divided by `stride`, if any.
void AppendEvery(int64_t stride, int64_t rest, DeviceRange range, std::vector<DeviceSet>& sets);

}  // namespace orrery::cluster

#endif  // ORRERY_CLUSTER_TOPOLOGIES_H_
