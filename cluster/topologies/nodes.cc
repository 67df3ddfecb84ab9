#include <utility>

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
std::optional<Bandwidth> Bisection(const TopologyShape& shape) {
  const int32_t nodes = NodeCount(shape);
  const Bandwidth nics = nodes > 1 ? Aggregate(shape.nic.rate, shape.devices / 2) : Bandwidth(0);
  const Bandwidth ports =
      nodes % 2 == 1 ? Aggregate(shape.port.rate, shape.devices_per_node / 2) : Bandwidth(0);
  return Sum(nics, ports);
}

// The links of a device, at 2 or 4 times its index: into its node and back, to the fabric and back.
enum Place : int32_t { kPortOut, kPortIn, kNicOut, kNicIn };

int32_t LinksPerDevice(const TopologyShape& shape) { return NodeCount(shape) > 1 ? 4 : 2; }

int64_t LinkCount(const TopologyShape& shape) {
  return int64_t{shape.devices} * LinksPerDevice(shape);
}

Link LinkAt(const TopologyShape& shape, LinkNumber link) {
  const auto device = static_cast<int32_t>(link / LinksPerDevice(shape));
  const auto place = static_cast<int32_t>(link % LinksPerDevice(shape));
  const bool is_port = place == kPortOut || place == kPortIn;
  const VertexId node_switch(shape.devices + device / shape.devices_per_node);
  const VertexId fabric(shape.devices + NodeCount(shape));
  Link row = {.from = VertexId(device),
              .to = is_port ? node_switch : fabric,
              .speed = is_port ? shape.port : shape.nic,
              .kind = is_port ? "port" : "nic"};
  if (place == kPortIn || place == kNicIn) std::swap(row.from, row.to);
  return row;
}

void AppendRoute(const TopologyShape& shape, DeviceId from, DeviceId to,
                 std::vector<LinkNumber>& route) {
  const bool same_node =
      from.index() / shape.devices_per_node == to.index() / shape.devices_per_node;
  const int64_t stride = LinksPerDevice(shape);
  route.push_back(from.index() * stride + (same_node ? kPortOut : kNicOut));
  route.push_back(to.index() * stride + (same_node ? kPortIn : kNicIn));
}

}  // namespace

constinit const TopologyKind kNodesTopology = {
    .name = "nodes",
    .summary = "Nodes of devices around a switch; each device's own NIC to a non-blocking fabric.",
    .check = Check,
    .link_count = LinkCount,
    .link_at = LinkAt,
    .append_route = AppendRoute,
    .path = Path,
    .bisection = Bisection,
};

}  // namespace orrery::cluster
