#ifndef ORRERY_CLUSTER_TOPOLOGIES_H_
#define ORRERY_CLUSTER_TOPOLOGIES_H_

#include "cluster/topology.h"

// The records of all topologies by name, as topologies.def lists them. A topology's file includes
// this, so that its record has the linkage and the name that the list says.

namespace orrery::cluster {

#define ORRERY_TOPOLOGY(Name, file) extern const TopologyKind k##Name##Topology;
#include "cluster/topologies.def"
#undef ORRERY_TOPOLOGY

}  // namespace orrery::cluster

#endif  // ORRERY_CLUSTER_TOPOLOGIES_H_
