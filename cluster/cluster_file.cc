#include "cluster/cluster_file.h"

#include "absl/strings/match.h"
#include "support/file.h"
#include "support/status.h"

namespace orrery::cluster {

bool IsClusterFile(absl::string_view name) {
  return absl::EndsWith(name, ".textproto") || absl::EndsWith(name, ".pbtxt") ||
         absl::EndsWith(name, ".json");
}

absl::StatusOr<Cluster> ReadClusterFile(const std::string& name) {
  ORRERY_ASSIGN_OR_RETURN(const std::string text, ReadFile(name));
  const bool is_json = absl::EndsWith(name, ".json");
  return ParseClusterText(text, is_json ? ClusterFormat::kJson : ClusterFormat::kText, name);
}

}  // namespace orrery::cluster
