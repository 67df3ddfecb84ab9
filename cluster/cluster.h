#ifndef ORRERY_CLUSTER_CLUSTER_H_
#define ORRERY_CLUSTER_CLUSTER_H_

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "cluster/device.h"
#include "cluster/topology.h"

// A cluster is a number of devices and how they are connected. `--cluster` names one.

namespace orrery::cluster {

/// Devices, of one kind or of several, and the network between them.
struct Cluster {
  std::string name;   // as it was asked for: "dgx-a100:4"
  Device device;      // the first kind: of every device, unless there are other kinds
  Topology topology;  // between them
  std::vector<Device> other_kinds = {};
  std::vector<int32_t> kind_by_device = {};  // empty where there is one kind

  /// The number of devices.
  int32_t size() const { return topology.devices(); }

  /// The number of kinds of device, at least 1; numbered from 0, that of device 0.
  int32_t kind_count() const { return 1 + static_cast<int32_t>(other_kinds.size()); }
  /// The kind of device that has this number. Aborts unless 0 <= number < kind_count().
  const Device& kind(int32_t number) const;
  /// The number of the kind that a device is of. Aborts for a device that is none of the cluster's.
  int32_t kind_of(DeviceId id) const;
  /// What that device is.
  const Device& device_of(DeviceId id) const { return kind(kind_of(id)); }

  /// Says what the next `count` devices are; the first call begins with device 0. Kinds of one name
  /// are one kind.
  void AddDevices(const Device& added, int32_t count);
};

/// A cluster that one can buy, but for its number of nodes. One row of a table, thus
/// so many fields.
struct ClusterPreset {
  absl::string_view name;    // "dgx-a100"
  absl::string_view device;  // as FindDevice knows it
  int32_t devices_per_node = 1;
  PathInfo port = {};  // one way, of a device to its node's switch, or to each of its neighbours
  PathInfo nic = {};   // one way, of a device to the fabric between nodes
  absl::string_view source;                 // of rates and latencies
  int32_t nics_per_node = 0;                // that the devices of a node share; 0: each has its own
  int32_t torus_dimensions = 0;             // 0: a switch in the node and NICs to a fabric
  bool pairs = false;                       // no switch in a node: each pair has its own port
  bool port_switch_reduces = false;         // NVLS
  absl::string_view summary = {};           // "8 A100-80GB, NVLink 3, 8 x HDR"
  absl::string_view collectives = "ideal";  // as FindCollectiveProfile knows it
  int32_t boards_per_node = 1;              // each with a switch; >= 1
  PathInfo bridge = {};                     // one way, from a board to what joins those of a node
};

/// All presets, in the order of the table in presets.cc.
std::span<const ClusterPreset> AllClusterPresets();

/// Rate and latency of a link by its name: "hdr", "100gbe", "nvlink4", "pcie5".
struct LinkGeneration {
  absl::string_view name;
  PathInfo speed;  // one way; of a NIC, on the way across leaf switches
  absl::string_view source;
  Duration latency_to_rail = {};  // of a NIC, where both ends are on one leaf switch; 0: not known
};

/// All that a SPEED may name, in the order of the table in presets.cc.
std::span<const LinkGeneration> AllLinkGenerations();

/// One spelling of a cluster, for a list of them.
struct ClusterSpelling {
  std::string example;  // "dgx-a100:4"
  std::string summary;  // a sentence
};

/// Every way to name a cluster: uniform, the presets, the topologies, a file.
std::vector<ClusterSpelling> ListClusters();

/// The cluster that `spec` describes:
///   uniform:16@200Gbps                    16 equal devices (v100-32gb), each pair with its own
///                                         link at that rate, one way, and no latency
///   uniform:16@200Gbps,device=a100-80gb   likewise, of another device
///   dgx-a100:4                            4 nodes of a preset
///   dgx-h100:16,nic=hdr,oversubscription=2   with other NICs, on rails that a spine joins
///   ring:8@50GB/s,latency=500ns           a topology by its name; ListClusters has them all
///   cluster.textproto, cluster.json       a file, see cluster/cluster_file.h
/// Anything else is an InvalidArgument of one line: --cluster 'spec': what was found and wanted.
absl::StatusOr<Cluster> ParseCluster(absl::string_view spec);

}  // namespace orrery::cluster

#endif  // ORRERY_CLUSTER_CLUSTER_H_
