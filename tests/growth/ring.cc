#include <algorithm>
#include <cstdlib>

#include "cluster/topologies.h"

// Every device has a `port` to each of its two neighbours: messages take the shorter way round.

namespace orrery::cluster {
namespace {

absl::Status Check(const TopologyShape& shape) {
  if (shape.devices == 1 || shape.port.rate > Bandwidth(0)) return absl::OkStatus();
  return absl::InvalidArgumentError("got a port of 0 bytes/s; wanted a positive rate");
}

PathInfo Path(const TopologyShape& shape, DeviceId from, DeviceId to) {
  const int32_t apart = std::abs(from.index() - to.index());
  const int32_t hops = std::min(apart, shape.devices - apart);
  return {.rate = shape.port.rate, .latency = shape.port.latency * hops};
}

// Two devices share one pair of links, more are cut from the rest at two places.
int32_t Neighbours(const TopologyShape& shape) { return std::min(shape.devices - 1, 2); }

Bandwidth Bisection(const TopologyShape& shape) {
  return Aggregate(shape.port.rate, Neighbours(shape));
}

int64_t LinkCount(const TopologyShape& shape) { return int64_t{shape.devices} * Neighbours(shape); }

std::vector<Link> Links(const TopologyShape& shape) {
  std::vector<Link> links;
  for (int32_t from = 0; from < shape.devices; ++from) {
    const int32_t next = (from + 1) % shape.devices;
    if (shape.devices > 1) links.push_back({VertexId(from), VertexId(next), shape.port, "port"});
    if (shape.devices > 2) links.push_back({VertexId(next), VertexId(from), shape.port, "port"});
  }
  return links;
}

}  // namespace

extern constinit const TopologyKind kRingTopology = {
    .name = "ring",
    .summary = "Every device is linked with its two neighbours.",
    .check = Check,
    .path = Path,
    .bisection = Bisection,
    .link_count = LinkCount,
    .links = Links,
};

}  // namespace orrery::cluster
