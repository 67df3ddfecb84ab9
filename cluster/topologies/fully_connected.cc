#include "cluster/topologies.h"

// Every device has a link of its own to every other: nothing is ever shared but a pair's own link.
// It reads `port` only. This is DistIR's uniform topology.

namespace orrery::cluster {
namespace fully_connected_cc {
namespace {

absl::Status Check(const TopologyShape& shape) {
  return shape.devices == 1 ? absl::OkStatus() : CheckRate("port", shape.port);
}

PathInfo Path(const TopologyShape& shape, DeviceId, DeviceId) { return shape.port; }

std::optional<Bandwidth> Bisection(const TopologyShape& shape) {
  const int64_t half = shape.devices / 2;
  return Aggregate(shape.port.rate, half * (shape.devices - half));
}

int64_t LinkCount(const TopologyShape& shape) {
  return int64_t{shape.devices} * (shape.devices - 1);
}

// Rows of links from a device, in the order of where they lead; none leads to the device itself.
Link LinkAt(const TopologyShape& shape, LinkNumber link) {
  const auto from = static_cast<int32_t>(link / (shape.devices - 1));
  const auto position = static_cast<int32_t>(link % (shape.devices - 1));
  return {VertexId(from), VertexId(position < from ? position : position + 1), shape.port, "pair"};
}

void AppendRoute(const TopologyShape& shape, DeviceId from, DeviceId to,
                 std::vector<LinkNumber>& route) {
  const int32_t position = to < from ? to.index() : to.index() - 1;
  route.push_back(int64_t{from.index()} * (shape.devices - 1) + position);
}

}  // namespace
}  // namespace fully_connected_cc

constinit const TopologyKind kFullyConnectedTopology = {
    .name = "fully_connected",
    .summary = "Every pair of devices has its own link, all at the same rate.",
    .parameters = "port",
    .spelling = SizeSpelling::kDevices,
    .example = "fully-connected:8@50GB/s",
    .check = fully_connected_cc::Check,
    .link_count = fully_connected_cc::LinkCount,
    .link_at = fully_connected_cc::LinkAt,
    .append_route = fully_connected_cc::AppendRoute,
    .path = fully_connected_cc::Path,
    .bisection = fully_connected_cc::Bisection,
    .rotations =
        [](const TopologyShape& shape) { return std::vector<Rotation>{{.size = shape.devices}}; },
    .interchangeable = true,
};

}  // namespace orrery::cluster
