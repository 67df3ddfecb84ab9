#ifndef ORRERY_CLUSTER_CLUSTER_FILE_H_
#define ORRERY_CLUSTER_CLUSTER_FILE_H_

#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "cluster/cluster.h"
#include "cluster/collective_profile.h"

// Clusters as files: cluster/cluster.proto, in Protobuf's text format or in JSON.

namespace orrery::cluster {

/// How the text of a cluster is written: Protobuf's text format, or JSON.
enum class ClusterFormat { kText, kJson };

/// Whether a name is that of a cluster file: it ends with .textproto, .pbtxt or .json.
bool IsClusterFile(absl::string_view name);

/// What the file of that name is written in.
ClusterFormat FormatOf(absl::string_view name);

/// The cluster that the file describes, under its `name`, or else the file's. InvalidArgument
/// of one line says where: "a.textproto:12: topology.port.rate: '0GB/s' is no bandwidth; wanted
/// ..."; JSON has the path of the field, and no line.
absl::StatusOr<Cluster> ReadClusterFile(const std::string& name);

/// All that such a text says.
struct ClusterText {
  std::vector<Device> kinds;  // of its own
  std::optional<CollectiveProfile> collectives;
  absl::StatusOr<Cluster> cluster;  // an error where it has those and no more
};
/// Of a text; `name` stands in errors.
absl::StatusOr<ClusterText> ReadClusterText(absl::string_view text, ClusterFormat format,
                                            const std::string& name);

/// All that the file of that name says.
absl::StatusOr<ClusterText> ReadClusterParts(const std::string& name);

/// The cluster of a file's `text`; `name` stands in errors.
absl::StatusOr<Cluster> ParseClusterText(absl::string_view text, ClusterFormat format,
                                         const std::string& name);

/// What ParseClusterText reads as the same cluster. A graph comes with each link on its own.
std::string PrintCluster(const Cluster& cluster, ClusterFormat format = ClusterFormat::kText);

}  // namespace orrery::cluster

#endif  // ORRERY_CLUSTER_CLUSTER_FILE_H_
