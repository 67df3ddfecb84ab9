#include "absl/strings/str_cat.h"
#include "cluster/topologies.h"

// Nodes of `devices_per_node` devices, as a DGX has them. Each device has a `port` to its node's
// switch (NVSwitch) and a `nic` of its own to a fabric that never blocks (a fat tree at full
// bisection, drawn as one switch):
//
//     device0  device1      device2  device3
//      |  \port /  |         |  \port /  |
//      |  switch0  |nic      |  switch1  |nic
//      +-----------+--- switch2 ---+-----+
//
// The NIC hangs on the device, not behind its port: between nodes a message takes two NICs and no
// port. Within a node it takes two ports, however fast the NICs are.

namespace orrery::cluster {
namespace {

int32_t NodeCount(const TopologyShape& shape) { return shape.devices / shape.devices_per_node; }

absl::Status Check(const TopologyShape& shape) {
  if (shape.devices % shape.devices_per_node != 0) {
    return absl::InvalidArgumentError(absl::StrCat("got ", shape.devices, " devices in nodes of ",
                                                   shape.devices_per_node,
                                                   "; wanted a whole number of nodes"));
  }
  if (shape.devices_per_node > 1 && shape.port.rate == Bandwidth(0)) {
    return absl::InvalidArgumentError("got a port of 0 bytes/s; wanted a positive rate");
  }
  if (NodeCount(shape) > 1 && shape.nic.rate == Bandwidth(0)) {
    return absl::InvalidArgumentError("got a nic of 0 bytes/s; wanted a positive rate");
  }
  return absl::OkStatus();
}

PathInfo Path(const TopologyShape& shape, DeviceId from, DeviceId to) {
  const bool same_node =
      from.index() / shape.devices_per_node == to.index() / shape.devices_per_node;
  const PathInfo& link = same_node ? shape.port : shape.nic;
  return Join(link, link);
}

// A cut between nodes severs half of the NICs. When the number of nodes is odd one node is cut
// too, and half of its ports with it; cutting more nodes only severs more.
Bandwidth Bisection(const TopologyShape& shape) {
  const int32_t nodes = NodeCount(shape);
  const Bandwidth nics = nodes > 1 ? Aggregate(shape.nic.rate, shape.devices / 2) : Bandwidth(0);
  const Bandwidth ports =
      nodes % 2 == 1 ? Aggregate(shape.port.rate, shape.devices_per_node / 2) : Bandwidth(0);
  return Sum(nics, ports);
}

int64_t LinkCount(const TopologyShape& shape) {
  return int64_t{shape.devices} * (NodeCount(shape) > 1 ? 4 : 2);
}

std::vector<Link> Links(const TopologyShape& shape) {
  std::vector<Link> links;
  links.reserve(static_cast<size_t>(LinkCount(shape)));
  const auto connect = [&](VertexId device, VertexId hub, const PathInfo& speed,
                           absl::string_view kind) {
    links.push_back({device, hub, speed, kind});
    links.push_back({hub, device, speed, kind});
  };
  const VertexId fabric(shape.devices + NodeCount(shape));
  for (int32_t device = 0; device < shape.devices; ++device) {
    const VertexId node_switch(shape.devices + device / shape.devices_per_node);
    connect(VertexId(device), node_switch, shape.port, "port");
    if (NodeCount(shape) > 1) connect(VertexId(device), fabric, shape.nic, "nic");
  }
  return links;
}

}  // namespace

constinit const TopologyKind kNodesTopology = {
    .name = "nodes",
    .summary = "Nodes of devices around a switch; each device's own NIC to a non-blocking fabric.",
    .check = Check,
    .path = Path,
    .bisection = Bisection,
    .link_count = LinkCount,
    .links = Links,
};

}  // namespace orrery::cluster
