#include <utility>

#include "cluster/topologies.h"

// Nodes as of the kind nodes, but the fabric is rails: each device's `nic` leads to the switch of
// its local index, and a `spine` joins those switches. Two nodes of two:
//
//              switch4 (spine)
//             /spine         \spine
//         switch2           switch3       rails 0 and 1
//          |nic  \          /   |nic
//          |      +--------/-+  |
//     device0  device1   device2  device3
//          \port /           \port /
//          switch0           switch1
//
// Within a node a message takes two ports; between devices of one local index two NICs; between
// others two NICs and two spine links. A rail's spine link is one, of all its uplinks' bandwidth.

namespace orrery::cluster {
namespace rails_cc {
namespace {

int32_t Rails(const TopologyShape& shape) { return shape.devices_per_node; }
int32_t NodeCount(const TopologyShape& shape) { return shape.devices / shape.devices_per_node; }
bool HasFabric(const TopologyShape& shape) { return NodeCount(shape) > 1; }
bool HasSpine(const TopologyShape& shape) { return HasFabric(shape) && Rails(shape) > 1; }

absl::Status Check(const TopologyShape& shape) {
  if (absl::Status whole = CheckWholeNodes(shape); !whole.ok()) return whole;
  if (shape.devices_per_node > 1) {
    if (absl::Status port = CheckRate("port", shape.port); !port.ok()) return port;
  }
  if (HasFabric(shape)) {
    if (absl::Status nic = CheckRate("nic", shape.nic); !nic.ok()) return nic;
  }
  return HasSpine(shape) ? CheckRate("spine", shape.spine) : absl::OkStatus();
}

// First four links a device, then two a rail.
enum Position : int32_t { kPortOut, kPortIn, kNicOut, kNicIn };
constexpr int64_t kPositions = 4;

int64_t LinksPerDevice(const TopologyShape& shape) { return HasFabric(shape) ? kPositions : 2; }

int64_t LinkCount(const TopologyShape& shape) {
  return shape.devices * LinksPerDevice(shape) + (HasSpine(shape) ? 2 * Rails(shape) : 0);
}

VertexId RailSwitch(const TopologyShape& shape, int32_t rail) {
  return VertexId(shape.devices + NodeCount(shape) + rail);
}

Link DeviceLink(const TopologyShape& shape, int32_t device, int32_t position) {
  const bool is_port = position == kPortOut || position == kPortIn;
  const VertexId node_switch(shape.devices + device / shape.devices_per_node);
  Link row = {.from = VertexId(device),
              .to = is_port ? node_switch : RailSwitch(shape, device % Rails(shape)),
              .speed = is_port ? shape.port : shape.nic,
              .kind = is_port ? "port" : "nic"};
  if (position == kPortIn || position == kNicIn) std::swap(row.from, row.to);
  return row;
}

Link LinkAt(const TopologyShape& shape, LinkNumber link) {
  const int64_t first_spine = shape.devices * LinksPerDevice(shape);
  if (link < first_spine) {
    return DeviceLink(shape, static_cast<int32_t>(link / LinksPerDevice(shape)),
                      static_cast<int32_t>(link % LinksPerDevice(shape)));
  }
  const auto rail = static_cast<int32_t>((link - first_spine) / 2);
  Link row = {RailSwitch(shape, rail), RailSwitch(shape, Rails(shape)), shape.spine, "spine"};
  if ((link - first_spine) % 2 == 1) std::swap(row.from, row.to);
  return row;
}

void AppendRoute(const TopologyShape& shape, DeviceId from, DeviceId to,
                 std::vector<LinkNumber>& route) {
  const int64_t stride = LinksPerDevice(shape);
  if (from.index() / shape.devices_per_node == to.index() / shape.devices_per_node) {
    route.push_back(from.index() * stride + kPortOut);
    route.push_back(to.index() * stride + kPortIn);
    return;
  }
  const int32_t rail_from = from.index() % Rails(shape);
  const int32_t rail_to = to.index() % Rails(shape);
  route.push_back(from.index() * stride + kNicOut);
  if (rail_from != rail_to) {
    route.push_back(shape.devices * stride + 2 * int64_t{rail_from});
    route.push_back(shape.devices * stride + 2 * int64_t{rail_to} + 1);
  }
  route.push_back(to.index() * stride + kNicIn);
}

PathInfo Path(const TopologyShape& shape, DeviceId from, DeviceId to) {
  if (from.index() / shape.devices_per_node == to.index() / shape.devices_per_node) {
    return Join(shape.port, shape.port);
  }
  const PathInfo nics = Join(shape.nic, shape.nic);
  if (from.index() % Rails(shape) == to.index() % Rails(shape)) return nics;
  return Join(nics, Join(shape.spine, shape.spine));
}

// Known for an even number of nodes whose ports are not slower than its NICs: then the cheapest cut
// is between nodes, through every rail.
std::optional<Bandwidth> Bisection(const TopologyShape& shape) {
  if (NodeCount(shape) == 1) return Aggregate(shape.port.rate, shape.devices / 2);
  const bool ports_hold = Rails(shape) == 1 || shape.port.rate >= shape.nic.rate;
  if (NodeCount(shape) % 2 != 0 || !ports_hold) return std::nullopt;
  return Aggregate(shape.nic.rate, shape.devices / 2);
}

// Devices of the own node; of others, those of the own rail and the rest, whose ways the spine may
// narrow.
void AppendDestinations(const TopologyShape& shape, DeviceId from, std::vector<DeviceSet>& sets) {
  const int64_t rails = Rails(shape);
  const int64_t first = from.index() / rails * rails;
  const DeviceRange node = {first, first + rails};
  AppendAround(node, {from.index(), from.index() + 1}, sets);
  if (!HasSpine(shape) || shape.nic.rate <= shape.spine.rate) {
    AppendAround({0, shape.devices}, node, sets);
    return;
  }
  for (int64_t rail = 0; rail < rails; ++rail) {
    AppendEvery(rails, rail, {0, node.begin}, sets);
    AppendEvery(rails, rail, {node.end, shape.devices}, sets);
  }
}

bool Reduces(const TopologyShape& shape, VertexId vertex) {
  if (vertex.index() < shape.devices) return false;
  const bool in_node = vertex < RailSwitch(shape, 0);
  return in_node ? shape.port_switch_reduces : shape.nic_switch_reduces;
}

}  // namespace
}  // namespace rails_cc

constinit const TopologyKind kRailsTopology = {
    .name = "rails",
    .summary =
        "Nodes around a switch each; NICs of one local index share a rail's switch, and a "
        "spine joins the rails.",
    .parameters = "devices_per_node port nic spine port_switch_reduces nic_switch_reduces",
    .spelling = SizeSpelling::kNodes,
    .example = "rails:16x8@450GB/s,nic=50GB/s,oversubscription=2",
    .check = rails_cc::Check,
    .link_count = rails_cc::LinkCount,
    .link_at = rails_cc::LinkAt,
    .append_route = rails_cc::AppendRoute,
    .path = rails_cc::Path,
    .bisection = rails_cc::Bisection,
    .reduces = rails_cc::Reduces,
    .rotations =
        [](const TopologyShape& shape) {
          return std::vector<Rotation>{
              {.stride = shape.devices_per_node, .size = rails_cc::NodeCount(shape)},
              {.size = shape.devices_per_node}};
        },
    .append_destinations = rails_cc::AppendDestinations,
};

}  // namespace orrery::cluster
