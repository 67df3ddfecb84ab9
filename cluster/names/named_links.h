#ifndef ORRERY_CLUSTER_NAMES_NAMED_LINKS_H_
#define ORRERY_CLUSTER_NAMES_NAMED_LINKS_H_

#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "cluster/topology.h"

namespace orrery::cluster {

/// The links of a topology that a name says, ascending: "nic", all of that kind; "device3", all to
/// and from there; "device3/nic", those of them of that kind; "device3 -> switch0 (port)", the one
/// that Topology::LinkName calls so. InvalidArgument where there is none, which says of which kinds
/// there are some, or where there are too many links to look at.
absl::StatusOr<std::vector<LinkNumber>> FindLinks(const Topology& topology, absl::string_view name);

}  // namespace orrery::cluster

#endif  // ORRERY_CLUSTER_NAMES_NAMED_LINKS_H_
