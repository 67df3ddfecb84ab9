#ifndef ORRERY_CLUSTER_FILE_FILE_TOPOLOGY_H_
#define ORRERY_CLUSTER_FILE_FILE_TOPOLOGY_H_

#include <string>

#include "absl/status/statusor.h"
#include "cluster/cluster.pb.h"
#include "cluster/file/file_position.h"
#include "cluster/link_graph.h"
#include "cluster/topology.h"

// The topology of a cluster file. Between folders' files only: generated headers are not installed.

namespace orrery::cluster {

/// A rate and a latency; the rate is required.
absl::StatusOr<PathInfo> ReadSpeed(const file::Speed& speed, const FilePosition& position);

/// The topology of `devices` devices; 0 stands for as many as the topology itself says.
absl::StatusOr<Topology> ReadTopology(const file::Topology& topology, int32_t devices,
                                      const FilePosition& position);

/// An explicit graph, likewise.
absl::StatusOr<LinkGraph> ReadGraph(const file::Graph& graph, int32_t devices,
                                    const FilePosition& position);

/// `text` for as long as the program runs: link kinds are views.
absl::string_view KeepName(const std::string& text);

}  // namespace orrery::cluster

#endif  // ORRERY_CLUSTER_FILE_FILE_TOPOLOGY_H_
