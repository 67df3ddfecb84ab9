#include <algorithm>

#include "cluster/topologies.h"

// Devices in a row, each with a `port` to the next and to the one before.

namespace orrery::cluster {
namespace row_cc {
namespace {

absl::Status Check(const TopologyShape& shape) {
  if (shape.devices == 1 || shape.port.rate > Bandwidth(0)) return absl::OkStatus();
  return absl::InvalidArgumentError("got a port of 0 bytes/s; wanted a positive rate");
}

int64_t LinkCount(const TopologyShape& shape) { return 2 * (int64_t{shape.devices} - 1); }

// Even numbers lead up, from number / 2, and odd ones back down.
Link LinkAt(const TopologyShape& shape, LinkNumber link) {
  const VertexId lower(static_cast<int32_t>(link / 2));
  const VertexId upper(lower.index() + 1);
  const bool up = link % 2 == 0;
  return {up ? lower : upper, up ? upper : lower, shape.port, "port"};
}

void AppendRoute(const TopologyShape&, DeviceId from, DeviceId to, std::vector<LinkNumber>& route) {
  for (int64_t at = from.index(); at < to.index(); ++at) route.push_back(2 * at);
  for (int64_t at = from.index(); at > to.index(); --at) route.push_back(2 * at - 1);
}

std::optional<Bandwidth> Bisection(const TopologyShape& shape) {
  return Aggregate(shape.port.rate, std::min(shape.devices - 1, 1));
}

}  // namespace
}  // namespace row_cc

extern constinit const TopologyKind kRowTopology = {
    .name = "row",
    .summary = "Devices in a row, each linked with the next.",
    .parameters = "port",
    .spelling = SizeSpelling::kDevices,
    .example = "row:8@50GB/s",
    .check = row_cc::Check,
    .link_count = row_cc::LinkCount,
    .link_at = row_cc::LinkAt,
    .append_route = row_cc::AppendRoute,
    .bisection = row_cc::Bisection,
};

}  // namespace orrery::cluster
