#include "cluster/cluster_file.h"

#include "absl/strings/match.h"
#include "support/file.h"
#include "support/status.h"

namespace orrery::cluster {

bool IsClusterFile(absl::string_view name) {
  return absl::EndsWith(name, ".textproto") || absl::EndsWith(name, ".pbtxt") ||
         absl::EndsWith(name, ".json");
}

ClusterFormat FormatOf(absl::string_view name) {
  return absl::EndsWith(name, ".json") ? ClusterFormat::kJson : ClusterFormat::kText;
}

absl::StatusOr<ClusterText> ReadClusterParts(const std::string& name) {
  ORRERY_ASSIGN_OR_RETURN(const std::string text, ReadFile(name));
  return ReadClusterText(text, FormatOf(name), name);
}

absl::StatusOr<Cluster> ReadClusterFile(const std::string& name) {
  ORRERY_ASSIGN_OR_RETURN(const ClusterText read, ReadClusterParts(name));
  return read.cluster;
}

absl::StatusOr<Cluster> ParseClusterText(absl::string_view text, ClusterFormat format,
                                         const std::string& name) {
  ORRERY_ASSIGN_OR_RETURN(const ClusterText read, ReadClusterText(text, format, name));
  return read.cluster;
}

}  // namespace orrery::cluster
