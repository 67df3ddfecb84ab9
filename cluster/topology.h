#ifndef ORRERY_CLUSTER_TOPOLOGY_H_
#define ORRERY_CLUSTER_TOPOLOGY_H_

#include <cstdint>
#include <span>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "cluster/link.h"

// A topology says how devices are connected. It is a value of a few numbers, and answers what a
// cost model asks (`Path`) by closed form, whatever the size. cluster/link_graph.h makes the graph
// of its links, for those who need to know which links a path takes.

namespace orrery::cluster {

/// The numbers that a topology is made from; each kind says which of them it reads.
struct TopologyShape {
  int32_t devices = 1;           // >= 1
  int32_t devices_per_node = 1;  // >= 1
  PathInfo port = {};            // a device's link into its node, or to each of its neighbours
  PathInfo nic = {};             // a device's link out of its node
};

/// The one record of a kind of topology. All that a new one needs, besides its line in
/// topologies.def. The functions may rely on a shape that `check` accepted.
struct TopologyKind {
  absl::string_view name;     // "nodes"
  absl::string_view summary;  // one sentence
  /// What is wrong with a shape, beyond what Topology::Create checks for every kind.
  absl::Status (*check)(const TopologyShape& shape) = nullptr;
  /// Rate and latency from one device to another: those of its route in the graph of the links.
  PathInfo (*path)(const TopologyShape& shape, DeviceId from, DeviceId to) = nullptr;
  /// See Topology::Bisection.
  Bandwidth (*bisection)(const TopologyShape& shape) = nullptr;
  /// How many links `links` returns; asked first, as there may be too many to make.
  int64_t (*link_count)(const TopologyShape& shape) = nullptr;
  /// All links, in any order. Vertices 0 to devices-1 are the devices, then come the switches.
  /// Where two routes have equally many links, that of the lower vertices is taken.
  std::vector<Link> (*links)(const TopologyShape& shape) = nullptr;
};

/// All kinds of topology, in the order of topologies.def.
std::span<const TopologyKind* const> AllTopologies();

class Topology {
 public:
  /// One device, alone.
  Topology();
  /// A topology of that kind; InvalidArgument says which number of the shape is wrong and why.
  /// `kind` must outlive it: it is one of AllTopologies().
  static absl::StatusOr<Topology> Create(const TopologyKind& kind, const TopologyShape& shape);

  const TopologyKind& kind() const { return *kind_; }
  const TopologyShape& shape() const { return shape_; }
  int32_t devices() const { return shape_.devices; }

  /// Rate and latency from one device to another when nobody else sends; constant time. Requires
  /// two different devices of this topology.
  PathInfo Path(DeviceId from, DeviceId to) const;

  /// Over all ways to cut the devices into two halves (of n/2 rounded down and up), the least rate
  /// at which one half can send to the other; 0 for one device. At most what the type holds.
  Bandwidth Bisection() const { return kind_->bisection(shape_); }

 private:
  Topology(const TopologyKind& kind, const TopologyShape& shape) : kind_(&kind), shape_(shape) {}

  const TopologyKind* kind_;
  TopologyShape shape_;
};

}  // namespace orrery::cluster

#endif  // ORRERY_CLUSTER_TOPOLOGY_H_
