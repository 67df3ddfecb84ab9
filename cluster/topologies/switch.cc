#include <utility>

#include "cluster/topologies.h"

// All devices on one switch, by a `port` each. The switch itself never blocks.
//
//     device0  device1  device2  device3
//         \       |        |       /
//          +------ switch0 ------+

namespace orrery::cluster {
namespace switch_cc {
namespace {

absl::Status Check(const TopologyShape& shape) {
  return shape.devices == 1 ? absl::OkStatus() : CheckRate("port", shape.port);
}

// Even links lead from device link / 2 to the switch, odd ones back.
int64_t LinkCount(const TopologyShape& shape) { return 2 * int64_t{shape.devices}; }

Link LinkAt(const TopologyShape& shape, LinkNumber link) {
  Link row = {VertexId(static_cast<int32_t>(link / 2)), VertexId(shape.devices), shape.port,
              "port"};
  if (link % 2 == 1) std::swap(row.from, row.to);
  return row;
}

void AppendRoute(const TopologyShape&, DeviceId from, DeviceId to, std::vector<LinkNumber>& route) {
  route.push_back(2 * int64_t{from.index()});
  route.push_back(2 * int64_t{to.index()} + 1);
}

PathInfo Path(const TopologyShape& shape, DeviceId, DeviceId) {
  return Join(shape.port, shape.port);
}

std::optional<Bandwidth> Bisection(const TopologyShape& shape) {
  return Aggregate(shape.port.rate, shape.devices / 2);
}

}  // namespace
}  // namespace switch_cc

constinit const TopologyKind kSwitchTopology = {
    .name = "switch",
    .summary = "All devices on one switch that never blocks, by a port each.",
    .parameters = "port port_switch_reduces",
    .spelling = SizeSpelling::kDevices,
    .example = "switch:64@400GB/s",
    .check = switch_cc::Check,
    .link_count = switch_cc::LinkCount,
    .link_at = switch_cc::LinkAt,
    .append_route = switch_cc::AppendRoute,
    .path = switch_cc::Path,
    .bisection = switch_cc::Bisection,
    .reduces =
        [](const TopologyShape& shape, VertexId vertex) {
          return vertex.index() == shape.devices && shape.port_switch_reduces;
        },
    .rotations =
        [](const TopologyShape& shape) { return std::vector<Rotation>{{.size = shape.devices}}; },
    .interchangeable = true,
};

}  // namespace orrery::cluster
