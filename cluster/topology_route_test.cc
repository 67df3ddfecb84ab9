#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/str_join.h"
#include "cluster/topologies.h"

// Routes of each topology as text, on pictures small enough to follow by finger.

namespace orrery::cluster {
namespace topology_route_test_cc {
namespace {

constexpr PathInfo kSpeed = {Bandwidth(100), Duration(10)};
constexpr PathInfo kSlow = {Bandwidth(25), Duration(40)};

Topology Make(const TopologyKind& kind, const TopologyShape& shape) {
  const auto topology = Topology::Create(kind, shape);
  EXPECT_TRUE(topology.ok()) << topology.status();
  return topology.value_or(Topology());
}

std::string ErrorOf(const TopologyKind& kind, const TopologyShape& shape) {
  return std::string(Topology::Create(kind, shape).status().message());
}

// "device0 device1 device2": the vertices on the way, and what it meets.
std::string RouteOf(const Topology& topology, int32_t from, int32_t to) {
  std::vector<LinkNumber> route;
  topology.AppendRoute(DeviceId(from), DeviceId(to), route);
  std::string text = topology.VertexName(VertexId(from));
  for (const LinkNumber link : route) {
    absl::StrAppend(&text, " ", topology.VertexName(topology.LinkAt(link).to));
  }
  return text;
}

TopologyShape OfLevels(std::vector<Level> levels) {
  TopologyShape shape;
  for (const Level& level : levels) shape.devices *= level.size;
  shape.levels = std::move(levels);
  return shape;
}

TEST(Ring, GoesTheShorterWayRoundAndUpWhereBothAreAsLong) {
  const Topology ring = Make(kRingTopology, {.devices = 6, .port = kSpeed});
  EXPECT_EQ(RouteOf(ring, 0, 2), "device0 device1 device2");
  EXPECT_EQ(RouteOf(ring, 1, 5), "device1 device0 device5");
  EXPECT_EQ(RouteOf(ring, 4, 1), "device4 device5 device0 device1");
  EXPECT_EQ(ring.Path(DeviceId(1), DeviceId(5)), (PathInfo{Bandwidth(100), Duration(20)}));
  EXPECT_EQ(ring.link_count(), 12);
  EXPECT_EQ(ring.LinkName(0), "device0 -> device1 (ring)");
  EXPECT_EQ(ring.LinkName(6), "device0 -> device5 (ring)");
  EXPECT_EQ(ring.Bisection(), Bandwidth(200));
}

TEST(Ring, OneWayGoesAllTheWayRound) {
  const Topology ring = Make(kRingTopology, {.devices = 4, .port = kSpeed, .one_way = true});
  EXPECT_EQ(RouteOf(ring, 1, 0), "device1 device2 device3 device0");
  EXPECT_EQ(ring.link_count(), 4);
  EXPECT_EQ(ring.Bisection(), Bandwidth(100));
}

TEST(Ring, OfTwoHasOneLinkEachWay) {
  EXPECT_EQ(Make(kRingTopology, {.devices = 2, .port = kSpeed}).link_count(), 2);
  EXPECT_EQ(Make(kRingTopology, {.devices = 1}).link_count(), 0);
}

TEST(Switch, IsTwoPortsAway) {
  const Topology hub =
      Make(kSwitchTopology, {.devices = 3, .port = kSpeed, .port_switch_reduces = true});
  EXPECT_EQ(RouteOf(hub, 2, 0), "device2 switch0 device0");
  EXPECT_EQ(hub.Path(DeviceId(2), DeviceId(0)), (PathInfo{Bandwidth(100), Duration(20)}));
  EXPECT_TRUE(hub.SwitchReduces(VertexId(3)));
  EXPECT_FALSE(hub.SwitchReduces(VertexId(2)));
}

TEST(Nodes, SharedNicsAreVerticesOfTheirOwn) {
  TopologyShape shape = {.devices = 8, .devices_per_node = 4, .port = kSpeed, .nic = kSlow};
  shape.nics_per_node = 2;
  shape.host = {Bandwidth(30), Duration(1)};
  const Topology nodes = Make(kNodesTopology, shape);
  // Switches 0 and 1 are the nodes', 2 to 5 NICs, 6 the fabric.
  EXPECT_EQ(RouteOf(nodes, 0, 3), "device0 switch0 device3");
  EXPECT_EQ(RouteOf(nodes, 0, 6), "device0 switch2 switch6 switch5 device6");
  EXPECT_EQ(RouteOf(nodes, 1, 7), "device1 switch2 switch6 switch5 device7");
  EXPECT_EQ(nodes.Path(DeviceId(0), DeviceId(6)), (PathInfo{Bandwidth(25), Duration(82)}));
  EXPECT_EQ(nodes.Bisection(), Bandwidth(50));
  shape.nics_per_node = 3;
  EXPECT_EQ(ErrorOf(kNodesTopology, shape),
            "got 3 NICs for 4 devices; wanted as many devices on each");
}

// Switches 0 to 3 are the boards', 4 the fabric, 5 and 6 join the boards of a node.
TEST(Nodes, BoardsAreAcrossABridge) {
  TopologyShape shape = {.devices = 8, .devices_per_node = 4, .port = kSpeed, .nic = kSlow};
  shape.boards_per_node = 2;
  shape.bridge = {Bandwidth(60), Duration(3)};
  const Topology nodes = Make(kNodesTopology, shape);
  EXPECT_EQ(RouteOf(nodes, 0, 1), "device0 switch0 device1");
  EXPECT_EQ(RouteOf(nodes, 1, 2), "device1 switch0 switch5 switch1 device2");
  EXPECT_EQ(RouteOf(nodes, 7, 4), "device7 switch3 switch6 switch2 device4");
  EXPECT_EQ(RouteOf(nodes, 1, 6), "device1 switch4 device6");
  EXPECT_EQ(nodes.Path(DeviceId(1), DeviceId(2)), (PathInfo{Bandwidth(60), Duration(26)}));
  EXPECT_EQ(nodes.Path(DeviceId(0), DeviceId(1)), (PathInfo{Bandwidth(100), Duration(20)}));
  EXPECT_EQ(nodes.link_count(), 8 * 4 + 4 * 2);
  EXPECT_EQ(nodes.LinkName(32), "switch0 -> switch5 (bridge)");
  EXPECT_EQ(nodes.Bisection(), Bandwidth(4 * 25));
}

TEST(Rails, OtherRailsAreAcrossTheSpine) {
  TopologyShape shape = {.devices = 8, .devices_per_node = 2, .port = kSpeed, .nic = kSlow};
  shape.spine = {Bandwidth(20), Duration(5)};
  const Topology rails = Make(kRailsTopology, shape);
  // Switches 0 to 3 are the nodes', 4 and 5 the rails', 6 the spine.
  EXPECT_EQ(RouteOf(rails, 0, 1), "device0 switch0 device1");
  EXPECT_EQ(RouteOf(rails, 0, 6), "device0 switch4 device6");
  EXPECT_EQ(RouteOf(rails, 0, 7), "device0 switch4 switch6 switch5 device7");
  EXPECT_EQ(rails.Path(DeviceId(0), DeviceId(6)), (PathInfo{Bandwidth(25), Duration(80)}));
  EXPECT_EQ(rails.Path(DeviceId(0), DeviceId(7)), (PathInfo{Bandwidth(20), Duration(90)}));
  EXPECT_EQ(rails.link_count(), 8 * 4 + 2 * 2);
  EXPECT_EQ(rails.LinkName(32), "switch4 -> switch6 (spine)");
  EXPECT_EQ(rails.Bisection(), Bandwidth(4 * 25));
}

TEST(Torus, GoesAlongTheFirstDimensionFirst) {
  const Topology torus = Make(kTorusTopology, OfLevels({{4, kSpeed}, {3, kSpeed}, {2, kSpeed}}));
  // 23 is (3, 2, 1): down in the first, down in the second, the one link of the third.
  EXPECT_EQ(RouteOf(torus, 0, 23), "device0 device3 device11 device23");
  EXPECT_EQ(RouteOf(torus, 0, 6), "device0 device1 device2 device6");
  EXPECT_EQ(torus.link_count(), 24 * 2 + 24 * 2 + 24);
  EXPECT_EQ(torus.Bisection(), Bandwidth(6 * 2 * 100));
}

TEST(Torus, TakesOnlyRings) {
  EXPECT_EQ(ErrorOf(kTorusTopology, OfLevels({{4, kSpeed, LevelKind::kSwitch}})),
            "got a switch as level 0; wanted only rings; product mixes them");
  EXPECT_EQ(ErrorOf(kTorusTopology, {.devices = 4}), "got no levels; wanted 1 to 8");
  TopologyShape shape = OfLevels({{4, kSpeed}, {3, kSpeed}});
  shape.devices = 8;
  EXPECT_EQ(ErrorOf(kTorusTopology, shape), "got 8 devices; wanted the product of the levels, 12");
  shape.levels[1].speed = {};
  EXPECT_EQ(ErrorOf(kTorusTopology, shape), "got a level 1 of 0 bytes/s; wanted a positive rate");
}

TEST(Mesh, HasNoWayRound) {
  const Topology mesh =
      Make(kMeshTopology, OfLevels({{3, kSpeed, LevelKind::kLine}, {2, kSpeed, LevelKind::kLine}}));
  EXPECT_EQ(RouteOf(mesh, 2, 3), "device2 device1 device0 device3");
  EXPECT_EQ(mesh.link_count(), 2 * 2 * 2 + 3 * 2);
}

TEST(Product, GoesLevelByLevel) {
  Level hub = {2, kSlow, LevelKind::kSwitch};
  hub.reduces = true;
  const Topology product = Make(kProductTopology, OfLevels({{4, kSpeed}, hub}));
  EXPECT_EQ(RouteOf(product, 0, 6), "device0 device1 device2 switch2 device6");
  EXPECT_EQ(product.Path(DeviceId(0), DeviceId(6)), (PathInfo{Bandwidth(25), Duration(100)}));
  EXPECT_EQ(product.link_count(), 2 * 8 + 4 * 4);
  EXPECT_EQ(product.Bisection(), std::nullopt);
  EXPECT_TRUE(product.SwitchReduces(VertexId(8)));
  EXPECT_FALSE(product.SwitchReduces(VertexId(7)));
}

// Two levels: leaves of 2, two of them, and two switches above.
TEST(FatTree, TheWayUpIsChosenByDestination) {
  const Topology tree =
      Make(kFatTreeTopology,
           OfLevels({{.size = 2, .speed = kSpeed}, {.size = 2, .speed = kSpeed, .parents = 2}}));
  EXPECT_EQ(RouteOf(tree, 0, 1), "device0 switch0 device1");
  EXPECT_EQ(RouteOf(tree, 0, 2), "device0 switch0 switch2 switch1 device2");
  EXPECT_EQ(RouteOf(tree, 0, 3), "device0 switch0 switch3 switch1 device3");
  EXPECT_EQ(RouteOf(tree, 1, 3), "device1 switch0 switch3 switch1 device3");
  EXPECT_EQ(tree.link_count(), 2 * 4 + 2 * 4);
  EXPECT_EQ(tree.Bisection(), Bandwidth(200));
}

TEST(FatTree, FewerParentsAreOversubscription) {
  const Topology tree = Make(
      kFatTreeTopology, OfLevels({{.size = 4, .speed = kSpeed}, {.size = 2, .speed = kSpeed}}));
  EXPECT_EQ(tree.Bisection(), Bandwidth(100)) << "4 devices through one uplink";
}

TEST(FatTree, MayBePartlyFilled) {
  TopologyShape shape =
      OfLevels({{.size = 4, .speed = kSpeed}, {.size = 3, .speed = kSpeed, .parents = 2}});
  shape.devices = 9;
  EXPECT_EQ(Make(kFatTreeTopology, shape).link_count(), 2 * 9 + 2 * 3 * 2);
  shape.devices = 13;
  EXPECT_EQ(ErrorOf(kFatTreeTopology, shape),
            "got 13 devices, of which 2 levels reach 12; wanted larger levels or one more");
  shape.devices = 4;
  EXPECT_EQ(ErrorOf(kFatTreeTopology, shape),
            "got level 1 above 4 devices; wanted none, as those below reach 4");
}

// Every pair of a three-level tree: all links of a height carry as many routes.
TEST(FatTree, SpreadsAllPairsEvenly) {
  const Topology tree =
      Make(kFatTreeTopology, OfLevels({{.size = 4, .speed = kSpeed},
                                       {.size = 4, .speed = kSpeed, .parents = 4},
                                       {.size = 4, .speed = kSpeed, .parents = 4}}));
  std::vector<int> routes(static_cast<size_t>(tree.link_count()));
  for (int32_t from = 0; from < 64; ++from) {
    for (int32_t to = 0; to < 64; ++to) {
      std::vector<LinkNumber> route;
      if (from != to) tree.AppendRoute(DeviceId(from), DeviceId(to), route);
      for (const LinkNumber link : route) ++routes[static_cast<size_t>(link)];
    }
  }
  for (LinkNumber link = 0; link < tree.link_count(); ++link) {
    const int expected = link < 128 ? 63 : link < 256 ? 60 : 48;
    EXPECT_EQ(routes[static_cast<size_t>(link)], expected) << tree.LinkName(link);
  }
}

TEST(Dragonfly, TakesOneGlobalLink) {
  const std::vector<Level> levels = {{2, kSpeed}, {2, kSlow}, {3, kSlow}};
  const Topology dragonfly = Make(kDragonflyTopology, OfLevels(levels));
  // Groups of 4 devices; switches 0 and 1, 2 and 3, 4 and 5.
  EXPECT_EQ(RouteOf(dragonfly, 0, 1), "device0 switch0 device1");
  EXPECT_EQ(RouteOf(dragonfly, 0, 2), "device0 switch0 switch1 device2");
  EXPECT_EQ(RouteOf(dragonfly, 0, 4), "device0 switch0 switch3 switch2 device4");
  EXPECT_EQ(RouteOf(dragonfly, 0, 8), "device0 switch0 switch1 switch4 device8");
  EXPECT_EQ(dragonfly.link_count(), 2 * 12 + 3 * 2 + 3 * 2);
  EXPECT_EQ(dragonfly.Bisection(), std::nullopt);
}

TEST(Dragonfly, HasNoMoreGroupsThanLinksToThem) {
  EXPECT_EQ(ErrorOf(kDragonflyTopology, OfLevels({{2, kSpeed}, {2, kSlow}, {4, kSlow}})),
            "got 4 groups; wanted at most 3, as each of 2 routers has 1 links to other groups");
  EXPECT_EQ(ErrorOf(kDragonflyTopology, OfLevels({{2, kSpeed}})),
            "got 1 levels; wanted 3: devices of a router, routers of a group, groups");
}

TEST(Create, BoundsWhatCouldOverflow) {
  EXPECT_EQ(ErrorOf(kRingTopology, {.devices = kMaxDevices + 1, .port = kSpeed}),
            "got 1048577 devices; wanted at most 1048576");
  EXPECT_EQ(
      ErrorOf(kRingTopology, {.devices = 4, .port = {Bandwidth(1), Duration(2'000'000'000'000)}}),
      "got a port of 2.00 s; wanted at most 1.00 s");
  EXPECT_EQ(ErrorOf(kTorusTopology, OfLevels(std::vector<Level>(9))),
            "got 9 levels; wanted at most 8");
  TopologyShape shape = OfLevels(std::vector<Level>(8, {.speed = kSpeed, .parents = kMaxDevices}));
  shape.levels[0].size = 1 << 10;
  shape.levels[1].size = 1 << 10;
  shape.devices = 1 << 20;
  EXPECT_THAT(ErrorOf(kFatTreeTopology, shape), testing::HasSubstr("vertices at level 0"));
}

}  // namespace
}  // namespace topology_route_test_cc
}  // namespace orrery::cluster
