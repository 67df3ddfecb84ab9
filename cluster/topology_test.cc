#include "cluster/topology.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cluster/link_graph.h"
#include "cluster/topologies.h"

// Each topology on a picture or a sum that a person can check; topology_property_test.cc has what
// holds for all of them.

namespace orrery::cluster {
namespace topology_test_cc {
namespace {

const PathInfo kPort = {Bandwidth(300), Duration(10)};
const PathInfo kNic = {Bandwidth(25), Duration(40)};

Topology Make(const TopologyKind& kind, int32_t devices, int32_t devices_per_node) {
  const auto topology = Topology::Create(
      kind, {.devices = devices, .devices_per_node = devices_per_node, .port = kPort, .nic = kNic});
  EXPECT_TRUE(topology.ok()) << topology.status();
  return *topology;
}

std::vector<std::string> LinkNames(const Topology& topology) {
  const LinkGraph graph = *LinkGraph::Create(topology);
  std::vector<std::string> names;
  for (int32_t link = 0; link < graph.links().size(); ++link) {
    names.push_back(graph.LinkName(LinkId(link)));
  }
  return names;
}

std::string ErrorOf(const TopologyKind& kind, const TopologyShape& shape) {
  const absl::Status status = Topology::Create(kind, shape).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  return std::string(status.message());
}

TEST(Topology, IsOneDeviceByDefault) {
  EXPECT_EQ(Topology().devices(), 1);
  EXPECT_EQ(Topology().Bisection(), Bandwidth(0));
}

TEST(FullyConnected, EveryPairHasItsOwnLink) {
  const Topology topology = Make(kFullyConnectedTopology, 3, 1);
  EXPECT_THAT(LinkNames(topology),
              testing::ElementsAre("device0 -> device1 (pair)", "device0 -> device2 (pair)",
                                   "device1 -> device0 (pair)", "device1 -> device2 (pair)",
                                   "device2 -> device0 (pair)", "device2 -> device1 (pair)"));
  EXPECT_EQ(topology.Path(DeviceId(0), DeviceId(2)), kPort);
}

TEST(FullyConnected, BisectionCutsEveryPairAcross) {
  EXPECT_EQ(Make(kFullyConnectedTopology, 4, 1).Bisection(), Bandwidth(2 * 2 * 300));
  EXPECT_EQ(Make(kFullyConnectedTopology, 5, 1).Bisection(), Bandwidth(2 * 3 * 300));
  EXPECT_EQ(Make(kFullyConnectedTopology, 1, 1).Bisection(), Bandwidth(0));
}

TEST(Nodes, PortsToTheNodesSwitchAndNicsToTheFabric) {
  EXPECT_THAT(LinkNames(Make(kNodesTopology, 4, 2)),
              testing::ElementsAre("device0 -> switch0 (port)", "device0 -> switch2 (nic)",   //
                                   "device1 -> switch0 (port)", "device1 -> switch2 (nic)",   //
                                   "device2 -> switch1 (port)", "device2 -> switch2 (nic)",   //
                                   "device3 -> switch1 (port)", "device3 -> switch2 (nic)",   //
                                   "switch0 -> device0 (port)", "switch0 -> device1 (port)",  //
                                   "switch1 -> device2 (port)", "switch1 -> device3 (port)",  //
                                   "switch2 -> device0 (nic)", "switch2 -> device1 (nic)",    //
                                   "switch2 -> device2 (nic)", "switch2 -> device3 (nic)"));
}

TEST(Nodes, OneNodeHasNoFabric) {
  EXPECT_THAT(LinkNames(Make(kNodesTopology, 2, 2)),
              testing::ElementsAre("device0 -> switch0 (port)", "device1 -> switch0 (port)",
                                   "switch0 -> device0 (port)", "switch0 -> device1 (port)"));
}

TEST(Nodes, PathIsTwoPortsInANodeAndTwoNicsBetweenNodes) {
  const Topology topology = Make(kNodesTopology, 16, 8);
  EXPECT_EQ(topology.Path(DeviceId(0), DeviceId(7)), (PathInfo{Bandwidth(300), Duration(20)}));
  EXPECT_EQ(topology.Path(DeviceId(7), DeviceId(8)), (PathInfo{Bandwidth(25), Duration(80)}));
  EXPECT_EQ(topology.Path(DeviceId(15), DeviceId(0)), (PathInfo{Bandwidth(25), Duration(80)}));
}

TEST(Nodes, BisectionIsHalfOfTheNicsAndTheCutNodesPorts) {
  EXPECT_EQ(Make(kNodesTopology, 16, 8).Bisection(), Bandwidth(8 * 25));
  EXPECT_EQ(Make(kNodesTopology, 24, 8).Bisection(), Bandwidth(12 * 25 + 4 * 300));
  EXPECT_EQ(Make(kNodesTopology, 8, 8).Bisection(), Bandwidth(4 * 300));
}

TEST(Create, SaysWhichNumberIsWrong) {
  const PathInfo none = {};
  EXPECT_EQ(ErrorOf(kNodesTopology, {.devices = 0}), "got 0 devices; wanted at least 1");
  EXPECT_EQ(ErrorOf(kNodesTopology, {.devices_per_node = -8}),
            "got -8 devices a node; wanted at least 1");
  EXPECT_EQ(ErrorOf(kNodesTopology, {.devices = 12, .devices_per_node = 8}),
            "got 12 devices in nodes of 8; wanted a whole number of nodes");
  EXPECT_EQ(ErrorOf(kNodesTopology, {.devices = 8, .devices_per_node = 8, .port = none}),
            "got a port of 0 bytes/s; wanted a positive rate");
  EXPECT_EQ(ErrorOf(kNodesTopology, {.devices = 8, .devices_per_node = 4, .port = kPort}),
            "got a nic of 0 bytes/s; wanted a positive rate");
  EXPECT_EQ(ErrorOf(kFullyConnectedTopology, {.devices = 2}),
            "got a port of 0 bytes/s; wanted a positive rate");
  EXPECT_EQ(
      ErrorOf(kFullyConnectedTopology, {.devices = 2, .port = {Bandwidth(1), Duration(-1'000)}}),
      "got a port of 0.00 GB/s and -1.00 ns; wanted neither below 0");
}

TEST(Topology, NamesItsLinksAndRoutes) {
  const Topology topology = Make(kNodesTopology, 4, 2);
  EXPECT_EQ(topology.LinkName(0), "device0 -> switch0 (port)");
  EXPECT_EQ(topology.LinkName(15), "switch2 -> device3 (nic)");
  std::vector<LinkNumber> route;
  topology.AppendRoute(DeviceId(1), DeviceId(2), route);
  EXPECT_THAT(route, testing::ElementsAre(4 + 2, 8 + 3));
  EXPECT_DEATH(topology.LinkAt(16), "link 16 of 16");
  EXPECT_DEATH(topology.AppendRoute(DeviceId(1), DeviceId(1), route), "device1 to device1 of 4");
}

TEST(PathDeathTest, TakesTwoDevicesOfTheTopology) {
  const Topology topology = Make(kFullyConnectedTopology, 4, 1);
  EXPECT_DEATH(topology.Path(DeviceId(1), DeviceId(1)), "from device1 to device1 of 4");
  EXPECT_DEATH(topology.Path(DeviceId(0), DeviceId(4)), "from device0 to device4 of 4");
  EXPECT_DEATH(topology.Path(DeviceId(), DeviceId(1)), "from device<none> to device1 of 4");
}

}  // namespace
}  // namespace topology_test_cc
}  // namespace orrery::cluster
