#ifndef ORRERY_CLUSTER_CLUSTER_H_
#define ORRERY_CLUSTER_CLUSTER_H_

#include <cstdint>
#include <span>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "cluster/device.h"
#include "cluster/topology.h"

// A cluster is a number of equal devices and how they are connected. `--cluster` names one.

namespace orrery::cluster {

struct Cluster {
  std::string name;   // as it was asked for: "dgx-a100:4"
  Device device;      // of which every device is one
  Topology topology;  // between them

  /// The number of devices.
  int32_t size() const { return topology.devices(); }
};

/// A cluster that one can buy, but for its number of nodes. One row of a table.
struct ClusterPreset {
  absl::string_view name;    // "dgx-a100"
  absl::string_view device;  // as FindDevice knows it
  int32_t devices_per_node = 1;
  PathInfo port;             // one way, of a device to its node's switch
  PathInfo nic;              // one way, of a device to the fabric between nodes
  absl::string_view source;  // of rates and latencies
};

/// All presets, in the order of the table in cluster.cc.
std::span<const ClusterPreset> AllClusterPresets();

/// The cluster that `spec` describes:
///   uniform:16@200Gbps                    16 equal devices (v100-32gb), each pair with its own
///                                         link at that rate, one way, and no latency
///   uniform:16@200Gbps,device=a100-80gb   likewise, of another device
///   dgx-a100:4                            4 nodes of a preset
/// Anything else is an InvalidArgument of one line: --cluster 'spec': what was found and wanted.
absl::StatusOr<Cluster> ParseCluster(absl::string_view spec);

}  // namespace orrery::cluster

#endif  // ORRERY_CLUSTER_CLUSTER_H_
