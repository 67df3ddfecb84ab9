#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "cluster/topologies.h"

// Which shapes a topology takes, which of its switches reduce, for which shapes its bisection is
// known, and the links of small ones, one by one.

namespace orrery::cluster {
namespace topology_checks_test_cc {
namespace {

constexpr PathInfo kSpeed = {Bandwidth(100), Duration(10)};
constexpr PathInfo kSlow = {Bandwidth(25), Duration(40)};

std::string ErrorOf(const TopologyKind& kind, const TopologyShape& shape) {
  return std::string(Topology::Create(kind, shape).status().message());
}

TopologyShape OfLevels(std::vector<Level> levels) {
  TopologyShape shape;
  for (const Level& level : levels) shape.devices *= level.size;
  shape.levels = std::move(levels);
  return shape;
}

// The vertices whose switches reduce, by number.
std::vector<int32_t> Reducing(const TopologyKind& kind, const TopologyShape& shape) {
  const Topology topology = Topology::Create(kind, shape).value();
  int32_t most = 0;
  for (LinkNumber link = 0; link < topology.link_count(); ++link) {
    most = std::max({most, topology.LinkAt(link).from.index(), topology.LinkAt(link).to.index()});
  }
  std::vector<int32_t> reducing;
  for (int32_t vertex = 0; vertex <= most; ++vertex) {
    if (topology.SwitchReduces(VertexId(vertex))) reducing.push_back(vertex);
  }
  return reducing;
}

// "0>1 1>0": the ends of all links, in order.
std::string LinksOf(const TopologyKind& kind, const TopologyShape& shape) {
  const Topology topology = Topology::Create(kind, shape).value();
  std::string text;
  for (LinkNumber link = 0; link < topology.link_count(); ++link) {
    const Link row = topology.LinkAt(link);
    absl::StrAppend(&text, link == 0 ? "" : " ", row.from.index(), ">", row.to.index());
  }
  return text;
}

std::string BisectionOf(const TopologyKind& kind, const TopologyShape& shape) {
  const std::optional<Bandwidth> rate = Topology::Create(kind, shape).value().Bisection();
  return rate.has_value() ? absl::StrCat(rate->bytes_per_second()) : "unknown";
}

TEST(Create, WantsCountsAndSpeedsInTheirLimits) {
  const auto of = [](auto change) {
    TopologyShape shape = {.devices = 4, .devices_per_node = 2, .port = kSpeed, .nic = kSlow};
    shape.levels = {{.size = 4, .speed = kSpeed}};
    change(shape);
    return ErrorOf(kSwitchTopology, shape);
  };
  EXPECT_EQ(of([](TopologyShape&) {}), "");
  EXPECT_EQ(of([](auto& s) { s.devices = 0; }), "got 0 devices; wanted at least 1");
  EXPECT_EQ(of([](auto& s) { s.devices_per_node = 0; }), "got 0 devices a node; wanted at least 1");
  EXPECT_EQ(of([](auto& s) { s.nic.rate = Bandwidth(-1'000'000'000); }),
            "got a nic of -1.00 GB/s and 40 ps; wanted neither below 0");
  EXPECT_THAT(of([](auto& s) { s.host.latency = Duration(-1); }),
              testing::EndsWith("; wanted neither below 0"));
  EXPECT_EQ(of([](auto& s) { s.spine.latency = Duration(1'000'000'000'000); }), "");
  EXPECT_EQ(of([](auto& s) { s.spine.latency = Duration(1'000'000'000'001); }),
            "got a spine of 1.00 s; wanted at most 1.00 s");
  EXPECT_EQ(of([](auto& s) { s.levels[0].size = 0; }),
            "got level 0 of 0 with 1 parents; wanted 1 to 1048576");
  EXPECT_EQ(of([](auto& s) { s.levels[0].parents = kMaxDevices + 1; }),
            "got level 0 of 4 with 1048577 parents; wanted 1 to 1048576");
  EXPECT_EQ(of([](auto& s) { s.levels[0].size = s.levels[0].parents = kMaxDevices; }), "");
  EXPECT_EQ(of([](auto& s) { s.levels.resize(8); }), "");
  EXPECT_EQ(of([](auto& s) { s.port = {}; }), "got a port of 0 bytes/s; wanted a positive rate");
}

// One device needs no rate at all.
TEST(Create, WantsRatesOfLinksThatThereAre) {
  for (const TopologyKind* kind : {&kSwitchTopology, &kRingTopology, &kFullyConnectedTopology,
                                   &kNodesTopology, &kRailsTopology}) {
    EXPECT_EQ(ErrorOf(*kind, {.devices = 1}), "") << kind->name;
    EXPECT_NE(ErrorOf(*kind, {.devices = 2}), "") << kind->name;
  }
  EXPECT_EQ(ErrorOf(kProductTopology, OfLevels({{.size = 1}, {.size = 2, .speed = kSpeed}})), "");
}

TEST(Nodes, WantTheRatesThatTheyUse) {
  for (const TopologyKind* kind : {&kNodesTopology, &kRailsTopology}) {
    const bool rails = kind == &kRailsTopology;
    EXPECT_EQ(ErrorOf(*kind, {.devices = 4, .devices_per_node = 4, .port = kSpeed}), "");
    EXPECT_EQ(ErrorOf(*kind, {.devices = 4, .devices_per_node = 1, .nic = kSpeed}), "");
    EXPECT_EQ(ErrorOf(*kind, {.devices = 4, .devices_per_node = 2, .nic = kSpeed}),
              "got a port of 0 bytes/s; wanted a positive rate");
    EXPECT_EQ(ErrorOf(*kind, {.devices = 4, .devices_per_node = 2, .port = kSpeed}),
              "got a nic of 0 bytes/s; wanted a positive rate");
    EXPECT_EQ(ErrorOf(*kind, {.devices = 4, .devices_per_node = 2, .port = kSpeed, .nic = kSpeed}),
              rails ? "got a spine of 0 bytes/s; wanted a positive rate" : "");
    EXPECT_EQ(ErrorOf(*kind, {.devices = 5, .devices_per_node = 2, .port = kSpeed}),
              "got 5 devices in nodes of 2; wanted a whole number of nodes");
  }
}

TEST(Nodes, ShareNicsEvenly) {
  const auto of = [](int32_t nics, const PathInfo& host) {
    TopologyShape shape = {.devices = 8, .devices_per_node = 4, .port = kSpeed, .nic = kSlow};
    shape.nics_per_node = nics;
    shape.host = host;
    return ErrorOf(kNodesTopology, shape);
  };
  for (const int32_t nics : {1, 2, 4}) EXPECT_EQ(of(nics, kSpeed), "");
  for (const int32_t nics : {-1, 3, 8}) {
    EXPECT_EQ(of(nics, kSpeed),
              absl::StrCat("got ", nics, " NICs for 4 devices; wanted as many devices on each"));
  }
  EXPECT_EQ(of(2, {}), "got a host of 0 bytes/s; wanted a positive rate");
  EXPECT_EQ(of(0, {}), "");
}

// Devices 0 to 7, switches of nodes 8 and 9, then NICs and the fabric.
TEST(Nodes, ReduceInTheirSwitches) {
  TopologyShape shape = {.devices = 8, .devices_per_node = 4, .port = kSpeed, .nic = kSlow};
  shape.host = kSpeed;
  shape.port_switch_reduces = true;
  EXPECT_THAT(Reducing(kNodesTopology, shape), testing::ElementsAre(8, 9));
  shape.nics_per_node = 2;
  EXPECT_THAT(Reducing(kNodesTopology, shape), testing::ElementsAre(8, 9));
  shape.nic_switch_reduces = true;
  EXPECT_THAT(Reducing(kNodesTopology, shape), testing::ElementsAre(8, 9, 14));
  shape.port_switch_reduces = false;
  EXPECT_THAT(Reducing(kNodesTopology, shape), testing::ElementsAre(14));
  shape.nics_per_node = 0;
  EXPECT_THAT(Reducing(kNodesTopology, shape), testing::ElementsAre(10));
}

// Rails 10 to 13 and the spine 14 are of NICs.
TEST(Rails, ReduceInTheirSwitches) {
  TopologyShape shape = {.devices = 8, .devices_per_node = 4, .port = kSpeed, .nic = kSlow};
  shape.spine = kSpeed;
  shape.port_switch_reduces = true;
  EXPECT_THAT(Reducing(kRailsTopology, shape), testing::ElementsAre(8, 9));
  shape.port_switch_reduces = false;
  shape.nic_switch_reduces = true;
  EXPECT_THAT(Reducing(kRailsTopology, shape), testing::ElementsAre(10, 11, 12, 13, 14));
}

// Leaves 8 to 11, then 12 and 13, of two parents each.
TEST(FatTree, ReducesAtTheLevelsThatSaySo) {
  TopologyShape shape = OfLevels(
      {{.size = 2, .speed = kSpeed, .reduces = true}, {.size = 4, .speed = kSpeed, .parents = 2}});
  EXPECT_THAT(Reducing(kFatTreeTopology, shape), testing::ElementsAre(8, 9, 10, 11));
  shape.levels[0].reduces = false;
  shape.levels[1].reduces = true;
  EXPECT_THAT(Reducing(kFatTreeTopology, shape), testing::ElementsAre(12, 13));
}

// Four devices; switches of the first level 4 and 5, of the second 6 and 7.
TEST(Product, ReducesAtTheLevelsThatSaySo) {
  const Level hub = {.size = 2, .speed = kSpeed, .kind = LevelKind::kSwitch};
  TopologyShape shape = OfLevels({hub, hub});
  EXPECT_TRUE(Reducing(kProductTopology, shape).empty());
  shape.levels[0].reduces = true;
  EXPECT_THAT(Reducing(kProductTopology, shape), testing::ElementsAre(4, 5));
  shape.levels[0].reduces = false;
  shape.levels[1].reduces = true;
  EXPECT_THAT(Reducing(kProductTopology, shape), testing::ElementsAre(6, 7));
}

// Of trees that are full and have an even top; through the narrowest of their heights.
TEST(FatTree, HasABisectionWhereHalvesAreWhole) {
  const Level leaf = {.size = 2, .speed = kSpeed};
  EXPECT_EQ(BisectionOf(kFatTreeTopology, OfLevels({{.size = 1, .speed = kSpeed}})), "0");
  EXPECT_EQ(BisectionOf(kFatTreeTopology, OfLevels({{.size = 4, .speed = kSpeed}})), "200");
  EXPECT_EQ(BisectionOf(kFatTreeTopology, OfLevels({{.size = 3, .speed = kSpeed}})), "unknown");
  EXPECT_EQ(BisectionOf(kFatTreeTopology, OfLevels({leaf, {.size = 4, .speed = kSlow}})),
            "50");  // two leaves of one uplink
  EXPECT_EQ(
      BisectionOf(kFatTreeTopology, OfLevels({leaf, {.size = 4, .speed = kSlow, .parents = 3}})),
      "150");
  EXPECT_EQ(
      BisectionOf(kFatTreeTopology, OfLevels({leaf, {.size = 4, .speed = kSpeed, .parents = 9}})),
      "400");  // four ports
  TopologyShape partly = OfLevels({leaf, {.size = 4, .speed = kSlow}});
  partly.devices = 7;
  EXPECT_EQ(BisectionOf(kFatTreeTopology, partly), "unknown");
}

TEST(Rails, HaveABisectionBetweenNodes) {
  const auto of = [](int32_t devices, int32_t a_node, const PathInfo& port, const PathInfo& nic) {
    TopologyShape shape = {
        .devices = devices, .devices_per_node = a_node, .port = port, .nic = nic};
    shape.spine = kSpeed;
    return BisectionOf(kRailsTopology, shape);
  };
  EXPECT_EQ(of(4, 4, kSpeed, {}), "200");          // two ports
  EXPECT_EQ(of(8, 4, kSpeed, kSlow), "100");       // four NICs
  EXPECT_EQ(of(8, 4, kSpeed, kSpeed), "400");      // ports hold them
  EXPECT_EQ(of(8, 4, kSlow, kSpeed), "unknown");   // they do not
  EXPECT_EQ(of(12, 4, kSpeed, kSlow), "unknown");  // a node would be cut
  EXPECT_EQ(of(4, 1, {}, kSpeed), "200");
}

TEST(Torus, HasABisectionAcrossItsLongestDimension) {
  const auto of = [](const TopologyKind& kind, LevelKind level, int32_t first, int32_t second) {
    return BisectionOf(kind, OfLevels({{first, kSpeed, level}, {second, kSpeed, level}}));
  };
  EXPECT_EQ(of(kTorusTopology, LevelKind::kRing, 4, 2), "400");  // two lines, cut twice
  EXPECT_EQ(of(kTorusTopology, LevelKind::kRing, 2, 2), "200");  // one link between two
  EXPECT_EQ(of(kTorusTopology, LevelKind::kRing, 3, 1), "200");
  EXPECT_EQ(of(kTorusTopology, LevelKind::kRing, 2, 3), "unknown");
  EXPECT_EQ(of(kTorusTopology, LevelKind::kRing, 1, 1), "0");
  EXPECT_EQ(of(kMeshTopology, LevelKind::kLine, 2, 4), "200");
  EXPECT_EQ(BisectionOf(kTorusTopology, OfLevels({{4, kSpeed}, {2, kSlow}})), "unknown");
}

// Devices 0 to 5, routers 6 and 7, 8 and 9, 10 and 11 of groups of two.
TEST(Dragonfly, HasALinkBetweenEachTwoGroups) {
  const TopologyShape shape = OfLevels({{1, kSpeed}, {2, kSlow}, {3, kSlow}});
  EXPECT_EQ(LinksOf(kDragonflyTopology, shape),
            "0>6 6>0 1>7 7>1 2>8 8>2 3>9 9>3 4>10 10>4 5>11 11>5 "  // ports
            "6>7 7>6 8>9 9>8 10>11 11>10 "                          // in groups
            "6>9 7>10 8>11 9>6 10>7 11>8");                         // to the next and the one after
  TopologyShape most = OfLevels({{2, kSpeed}, {2, kSlow}, {5, kSlow}});
  EXPECT_EQ(ErrorOf(kDragonflyTopology, most),
            "got 5 groups; wanted at most 3, as each of 2 routers has 1 links to other groups");
  most.levels[2].parents = 2;
  EXPECT_EQ(ErrorOf(kDragonflyTopology, most), "");
  most.levels[0].speed = {};
  EXPECT_EQ(ErrorOf(kDragonflyTopology, most),
            "got a level 0 of 0 bytes/s; wanted a positive rate");
}

// Five devices on leaves of two, 5 to 7, under the switches 8 and 9.
TEST(FatTree, HasLinksUpAndDown) {
  TopologyShape shape =
      OfLevels({{.size = 2, .speed = kSpeed}, {.size = 3, .speed = kSlow, .parents = 2}});
  shape.devices = 5;
  EXPECT_EQ(LinksOf(kFatTreeTopology, shape),
            "0>5 5>0 1>5 5>1 2>6 6>2 3>6 6>3 4>7 7>4 "
            "5>8 8>5 5>9 9>5 6>8 8>6 6>9 9>6 7>8 8>7 7>9 9>7");
  const Topology tree = Topology::Create(kFatTreeTopology, shape).value();
  EXPECT_EQ(tree.LinkName(9), "switch2 -> device4 (port)");
  EXPECT_EQ(tree.LinkName(10), "switch0 -> switch3 (uplink)");
  EXPECT_EQ(tree.Path(DeviceId(0), DeviceId(4)), (PathInfo{Bandwidth(25), Duration(100)}));
  EXPECT_EQ(tree.Path(DeviceId(0), DeviceId(1)), (PathInfo{Bandwidth(100), Duration(20)}));
}

}  // namespace
}  // namespace topology_checks_test_cc
}  // namespace orrery::cluster
