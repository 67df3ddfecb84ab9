#ifndef ORRERY_CLUSTER_RESIZE_H_
#define ORRERY_CLUSTER_RESIZE_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

// The same cluster with another number of devices, as --cluster spells it.

namespace orrery::cluster {

/// The spelling of the cluster that `spec` describes with so many devices in place of its own:
/// "dgx-h100:16" of "dgx-h100:8" and 128. Nodes stay as they are; less than one is one node of
/// which so many devices are used, where the preset can say so: "dgx-h100:1,used=4".
/// InvalidArgument for a spec that ParseCluster does not take, for one whose shape says more than
/// its size (a file, torus:4x4@…, product:…), and for a number that is no whole number of nodes.
absl::StatusOr<std::string> ResizedSpec(absl::string_view spec, int64_t devices);

/// The numbers of devices to which it can be resized that divide its own, ascending; its own is the
/// last. InvalidArgument as ResizedSpec.
absl::StatusOr<std::vector<int64_t>> SmallerSizes(absl::string_view spec);

}  // namespace orrery::cluster

#endif  // ORRERY_CLUSTER_RESIZE_H_
