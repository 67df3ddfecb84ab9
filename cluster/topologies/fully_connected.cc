#include "cluster/topologies.h"

// Every device has a link of its own to every other: nothing is ever shared but a pair's own link.
// It reads `port` only. This is DistIR's uniform topology.

namespace orrery::cluster {
namespace {

absl::Status Check(const TopologyShape& shape) {
  if (shape.devices == 1 || shape.port.rate > Bandwidth(0)) return absl::OkStatus();
  return absl::InvalidArgumentError("got a port of 0 bytes/s; wanted a positive rate");
}

PathInfo Path(const TopologyShape& shape, DeviceId, DeviceId) { return shape.port; }

Bandwidth Bisection(const TopologyShape& shape) {
  const int64_t half = shape.devices / 2;
  return Aggregate(shape.port.rate, half * (shape.devices - half));
}

int64_t LinkCount(const TopologyShape& shape) {
  return int64_t{shape.devices} * (shape.devices - 1);
}

std::vector<Link> Links(const TopologyShape& shape) {
  std::vector<Link> links;
  links.reserve(static_cast<size_t>(LinkCount(shape)));
  for (int32_t from = 0; from < shape.devices; ++from) {
    for (int32_t to = 0; to < shape.devices; ++to) {
      if (from != to) links.push_back({VertexId(from), VertexId(to), shape.port, "pair"});
    }
  }
  return links;
}

}  // namespace

constinit const TopologyKind kFullyConnectedTopology = {
    .name = "fully_connected",
    .summary = "Every pair of devices has its own link, all at the same rate.",
    .check = Check,
    .path = Path,
    .bisection = Bisection,
    .link_count = LinkCount,
    .links = Links,
};

}  // namespace orrery::cluster
