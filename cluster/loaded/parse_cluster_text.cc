#include "cluster/cluster_file.h"
#include "support/module.h"
#include "support/status.h"

// For programs: cluster files are read by a module, so that Protobuf is loaded when one is named.

namespace orrery::cluster {

absl::StatusOr<ClusterText> ReadClusterText(absl::string_view text, ClusterFormat format,
                                            const std::string& name) {
  static const auto function = LoadModule<decltype(ReadClusterText)>("cluster_file");
  if (!function.ok()) return Annotate(function.status(), name);
  return (*function)(text, format, name);
}

}  // namespace orrery::cluster
