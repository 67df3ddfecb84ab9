#include <algorithm>
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
//
// With `nics_per_node`, that many NICs are shared by as many devices in a row each. A NIC is then a
// vertex of its own, and a message takes `host`, nic, nic, host:
//
//     device0  device1       device2  device3
//         \host /                \host /
//         switch2 -nic- switch4 -nic- switch3          (switch0 and 1 are the nodes')
//
// With `boards_per_node`, as many devices in a row each are around a switch of their own, and a
// `bridge` of each joins them (two HGX boards of four on the PCIe of one host): between boards a
// message takes port, bridge, bridge, port. All devices of a board share its bridge.

namespace orrery::cluster {
namespace nodes_cc {
namespace {

int32_t NodeCount(const TopologyShape& shape) { return shape.devices / shape.devices_per_node; }
bool HasFabric(const TopologyShape& shape) { return NodeCount(shape) > 1; }
bool SharesNics(const TopologyShape& shape) { return shape.nics_per_node > 0; }
bool HasBoards(const TopologyShape& shape) { return shape.boards_per_node > 1; }

int32_t Boards(const TopologyShape& shape) { return NodeCount(shape) * shape.boards_per_node; }

int32_t BoardOf(const TopologyShape& shape, DeviceId device) {
  return device.index() / (shape.devices_per_node / shape.boards_per_node);
}

absl::Status CheckShared(const TopologyShape& shape) {
  if (shape.nics_per_node < 0 || shape.nics_per_node > shape.devices_per_node ||
      shape.devices_per_node % shape.nics_per_node != 0) {
    return absl::InvalidArgumentError(absl::StrCat("got ", shape.nics_per_node, " NICs for ",
                                                   shape.devices_per_node,
                                                   " devices; wanted as many devices on each"));
  }
  return CheckRate("host", shape.host);
}

absl::Status CheckBoards(const TopologyShape& shape) {
  const int32_t boards = shape.boards_per_node;
  if (boards < 1 || boards > shape.devices_per_node || shape.devices_per_node % boards != 0) {
    return absl::InvalidArgumentError(absl::StrCat("got ", boards, " boards for ",
                                                   shape.devices_per_node,
                                                   " devices; wanted as many devices on each"));
  }
  if (HasBoards(shape)) return CheckRate("bridge", shape.bridge);
  if (shape.bridge.rate == Bandwidth(0)) return absl::OkStatus();
  return absl::InvalidArgumentError(
      "got a bridge where nodes are one board; wanted how many they have, or no bridge");
}

absl::Status Check(const TopologyShape& shape) {
  if (absl::Status whole = CheckWholeNodes(shape); !whole.ok()) return whole;
  if (absl::Status boards = CheckBoards(shape); !boards.ok()) return boards;
  if (shape.devices_per_node > 1) {
    if (absl::Status port = CheckRate("port", shape.port); !port.ok()) return port;
  }
  if (!HasFabric(shape)) return absl::OkStatus();
  if (absl::Status nic = CheckRate("nic", shape.nic); !nic.ok()) return nic;
  return shape.nics_per_node != 0 ? CheckShared(shape) : absl::OkStatus();
}

PathInfo Path(const TopologyShape& shape, DeviceId from, DeviceId to) {
  if (from.index() / shape.devices_per_node == to.index() / shape.devices_per_node) {
    const PathInfo ports = Join(shape.port, shape.port);
    if (BoardOf(shape, from) == BoardOf(shape, to)) return ports;
    return Join(ports, Join(shape.bridge, shape.bridge));
  }
  const PathInfo nics = Join(shape.nic, shape.nic);
  return SharesNics(shape) ? Join(nics, Join(shape.host, shape.host)) : nics;
}

// A cut between nodes severs half of the NICs. When the number of nodes is odd one node is cut
// too, and half of its ports with it; cutting more nodes only severs more. With shared NICs or
// boards that is known for whole nodes alone.
std::optional<Bandwidth> Bisection(const TopologyShape& shape) {
  const int32_t nodes = NodeCount(shape);
  if (HasBoards(shape) && nodes % 2 != 0) return std::nullopt;
  if (HasFabric(shape) && SharesNics(shape)) {
    if (nodes % 2 != 0) return std::nullopt;
    const Bandwidth hosts =
        Aggregate(shape.host.rate, shape.devices_per_node / shape.nics_per_node);
    return Aggregate(std::min(shape.nic.rate, hosts), int64_t{nodes / 2} * shape.nics_per_node);
  }
  const Bandwidth nics = nodes > 1 ? Aggregate(shape.nic.rate, shape.devices / 2) : Bandwidth(0);
  const Bandwidth ports =
      nodes % 2 == 1 ? Aggregate(shape.port.rate, shape.devices_per_node / 2) : Bandwidth(0);
  return Sum(nics, ports);
}

// The links of a device, at 2 or 4 times its index: into its node and back, to the fabric (or the
// shared NIC) and back. Then come the shared NICs' links to the fabric and back, then those of
// boards to what joins them, and back.
enum Position : int32_t { kPortOut, kPortIn, kNicOut, kNicIn };

int64_t LinksPerDevice(const TopologyShape& shape) { return HasFabric(shape) ? 4 : 2; }

int64_t SharedNics(const TopologyShape& shape) {
  return HasFabric(shape) ? int64_t{NodeCount(shape)} * shape.nics_per_node : 0;
}

int64_t FirstBridge(const TopologyShape& shape) {
  return shape.devices * LinksPerDevice(shape) + 2 * SharedNics(shape);
}

int64_t LinkCount(const TopologyShape& shape) {
  return FirstBridge(shape) + (HasBoards(shape) ? 2 * int64_t{Boards(shape)} : 0);
}

int64_t SharedNicOf(const TopologyShape& shape, int64_t device) {
  return device / (shape.devices_per_node / shape.nics_per_node);
}

VertexId NicVertex(const TopologyShape& shape, int64_t nic) {
  return VertexId(static_cast<int32_t>(shape.devices + Boards(shape) + nic));
}

VertexId Fabric(const TopologyShape& shape) { return NicVertex(shape, SharedNics(shape)); }

VertexId BoardVertex(const TopologyShape& shape, int64_t board) {
  return VertexId(static_cast<int32_t>(shape.devices + board));
}

// What joins the boards of a node.
VertexId Joint(const TopologyShape& shape, int64_t node) {
  const int32_t first = Fabric(shape).index() + (HasFabric(shape) ? 1 : 0);
  return VertexId(static_cast<int32_t>(first + node));
}

Link Bridge(const TopologyShape& shape, int64_t board) {
  return {BoardVertex(shape, board), Joint(shape, board / shape.boards_per_node), shape.bridge,
          "bridge"};
}

Link DeviceLink(const TopologyShape& shape, int32_t device, int64_t position) {
  Link row = {VertexId(device), BoardVertex(shape, BoardOf(shape, DeviceId(device))), shape.port,
              "port"};
  if (position == kNicOut || position == kNicIn) {
    const bool shared = SharesNics(shape);
    row.to = shared ? NicVertex(shape, SharedNicOf(shape, device)) : Fabric(shape);
    row.speed = shared ? shape.host : shape.nic;
    row.kind = shared ? "host" : "nic";
  }
  if (position == kPortIn || position == kNicIn) std::swap(row.from, row.to);
  return row;
}

Link LinkAt(const TopologyShape& shape, LinkNumber link) {
  const int64_t first_nic = shape.devices * LinksPerDevice(shape);
  if (link < first_nic) {
    return DeviceLink(shape, static_cast<int32_t>(link / LinksPerDevice(shape)),
                      link % LinksPerDevice(shape));
  }
  const int64_t first_bridge = FirstBridge(shape);
  const bool bridge = link >= first_bridge;
  const int64_t number = link - (bridge ? first_bridge : first_nic);
  Link row = bridge ? Bridge(shape, number / 2)
                    : Link{NicVertex(shape, number / 2), Fabric(shape), shape.nic, "nic"};
  if (number % 2 == 1) std::swap(row.from, row.to);
  return row;
}

void AppendRoute(const TopologyShape& shape, DeviceId from, DeviceId to,
                 std::vector<LinkNumber>& route) {
  const int64_t stride = LinksPerDevice(shape);
  if (from.index() / shape.devices_per_node == to.index() / shape.devices_per_node) {
    route.push_back(from.index() * stride + kPortOut);
    const int32_t board = BoardOf(shape, from), other = BoardOf(shape, to);
    if (board != other) {
      route.push_back(FirstBridge(shape) + 2 * int64_t{board});
      route.push_back(FirstBridge(shape) + 2 * int64_t{other} + 1);
    }
    route.push_back(to.index() * stride + kPortIn);
    return;
  }
  route.push_back(from.index() * stride + kNicOut);
  if (SharesNics(shape)) {
    const int64_t first_nic = shape.devices * stride;
    route.push_back(first_nic + 2 * SharedNicOf(shape, from.index()));
    route.push_back(first_nic + 2 * SharedNicOf(shape, to.index()) + 1);
  }
  route.push_back(to.index() * stride + kNicIn);
}

// Nodes, and the devices of one where nothing tells them apart.
std::vector<Rotation> Rotations(const TopologyShape& shape) {
  std::vector<Rotation> rotations = {{.stride = shape.devices_per_node, .size = NodeCount(shape)}};
  if (!HasBoards(shape) && !SharesNics(shape))
    rotations.push_back({.size = shape.devices_per_node});
  return rotations;
}

// Devices of the own board, those of the own node, those of other nodes: a way to the other board,
// or node, is as wide on its second half.
void AppendDestinations(const TopologyShape& shape, DeviceId from, std::vector<DeviceSet>& sets) {
  const int64_t a_board = shape.devices_per_node / shape.boards_per_node;
  const auto around = [&](int64_t count) {
    const int64_t first = from.index() / count * count;
    return DeviceRange{first, first + count};
  };
  const DeviceRange self = around(1), board = around(a_board),
                    node = around(shape.devices_per_node);
  AppendAround(board, self, sets);
  AppendAround(node, board, sets);
  AppendAround({0, shape.devices}, node, sets);
}

bool Reduces(const TopologyShape& shape, VertexId vertex) {
  if (HasFabric(shape) && vertex == Fabric(shape)) return shape.nic_switch_reduces;
  return vertex.index() >= shape.devices && vertex < NicVertex(shape, 0) &&
         shape.port_switch_reduces;
}

}  // namespace
}  // namespace nodes_cc

constinit const TopologyKind kNodesTopology = {
    .name = "nodes",
    .summary =
        "Nodes of devices around a switch, or one a board; NICs of each device, or shared by a "
        "few, to a non-blocking fabric.",
    .parameters =
        "devices_per_node port nic nics_per_node host boards_per_node bridge port_switch_reduces "
        "nic_switch_reduces",
    .spelling = SizeSpelling::kNodes,
    .example = "nodes:4x8@450GB/s,nic=50GB/s",
    .check = nodes_cc::Check,
    .link_count = nodes_cc::LinkCount,
    .link_at = nodes_cc::LinkAt,
    .append_route = nodes_cc::AppendRoute,
    .path = nodes_cc::Path,
    .bisection = nodes_cc::Bisection,
    .reduces = nodes_cc::Reduces,
    .rotations = nodes_cc::Rotations,
    .append_destinations = nodes_cc::AppendDestinations,
};

}  // namespace orrery::cluster
