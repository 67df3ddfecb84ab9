#ifndef ORRERY_CLUSTER_LINK_H_
#define ORRERY_CLUSTER_LINK_H_

#include <cstdint>

#include "absl/strings/string_view.h"
#include "support/id.h"
#include "support/units.h"

// Devices and switches are the vertices of a cluster's network; links lead from one to another, in
// one direction each.

namespace orrery::cluster {

ORRERY_DEFINE_ID(DeviceId, "device");
ORRERY_DEFINE_ID(VertexId, "vertex");
ORRERY_DEFINE_ID(LinkId, "link");

/// What a message of n bytes meets on one link, or on a path of several: it arrives
/// latency + n / rate after it was sent, when it has the path to itself.
struct PathInfo {
  Bandwidth rate = {};    // of the narrowest link, one way
  Duration latency = {};  // of all links together; switches cut through

  friend bool operator==(const PathInfo&, const PathInfo&) = default;
};

/// The path that goes through both, one after the other.
PathInfo Join(const PathInfo& first, const PathInfo& second);

/// The rate of `count` links side by side; at most what the type holds. Requires count >= 0.
Bandwidth Aggregate(Bandwidth rate, int64_t count);
/// The rate of two bundles of links side by side; at most what the type holds.
Bandwidth Sum(Bandwidth first, Bandwidth second);

/// A link from one vertex to another, in this direction alone.
struct Link {
  VertexId from = {};
  VertexId to = {};
  PathInfo speed = {};
  absl::string_view kind = {};  // "port", "nic": what its topology calls it; never freed
};

}  // namespace orrery::cluster

#endif  // ORRERY_CLUSTER_LINK_H_
