#include "cluster/link_graph.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/str_join.h"
#include "cluster/topologies.h"

namespace orrery::cluster {
namespace {

// A topology of four devices that no one would build, for what the two real ones cannot show:
//
//   device0 -> device1 -> device3    narrow, slow
//   device0 -> device2 -> device3    wide, fast
//   device3 -> device0
const TopologyKind kDiamond = {
    .name = "diamond",
    .summary = "For tests.",
    .check = [](const TopologyShape&) { return absl::OkStatus(); },
    .link_count = [](const TopologyShape&) { return int64_t{5}; },
    .link_at =
        [](const TopologyShape&, LinkNumber link) {
          const PathInfo narrow = {Bandwidth(10), Duration(5)};
          const PathInfo wide = {Bandwidth(90), Duration(1)};
          const Link links[] = {{VertexId(3), VertexId(0), wide, "back"},
                                {VertexId(0), VertexId(2), wide, "wide"},
                                {VertexId(2), VertexId(3), wide, "wide"},
                                {VertexId(0), VertexId(1), narrow, "narrow"},
                                {VertexId(1), VertexId(3), wide, "wide"}};
          return links[link];
        },
};

LinkGraph MakeGraph(const TopologyKind& kind, const TopologyShape& shape) {
  auto graph = LinkGraph::Create(*Topology::Create(kind, shape));
  EXPECT_TRUE(graph.ok()) << graph.status();
  return *std::move(graph);
}

std::string Print(const LinkGraph& graph, const Route& route) {
  return absl::StrJoin(route.links, ", ",
                       [&](std::string* out, LinkId link) { out->append(graph.LinkName(link)); });
}

TEST(LinkGraph, RouteOfEquallyManyLinksGoesByTheLowerVertices) {
  LinkGraph graph = MakeGraph(kDiamond, {.devices = 4});
  const Route route = graph.FindRoute(DeviceId(0), DeviceId(3));
  EXPECT_EQ(Print(graph, route), "device0 -> device1 (narrow), device1 -> device3 (wide)");
  EXPECT_EQ(route.path, (PathInfo{Bandwidth(10), Duration(6)}));
}

TEST(LinkGraph, LinksHaveADirection) {
  LinkGraph graph = MakeGraph(kDiamond, {.devices = 4});
  EXPECT_EQ(Print(graph, graph.FindRoute(DeviceId(3), DeviceId(0))), "device3 -> device0 (back)");
  EXPECT_EQ(graph.FindRoute(DeviceId(1), DeviceId(2)).links.size(), 3u);
}

TEST(LinkGraph, LinksAreSortedWhateverTheOrderTheyCameIn) {
  const LinkGraph graph = MakeGraph(kDiamond, {.devices = 4});
  std::vector<std::string> names;
  for (int32_t link = 0; link < graph.links().size(); ++link) {
    names.push_back(graph.LinkName(LinkId(link)));
  }
  EXPECT_THAT(names, testing::ElementsAre("device0 -> device1 (narrow)",  //
                                          "device0 -> device2 (wide)",    //
                                          "device1 -> device3 (wide)",    //
                                          "device2 -> device3 (wide)",    //
                                          "device3 -> device0 (back)"));
  EXPECT_EQ(graph.vertex_count(), 4);
}

TEST(LinkGraph, RemembersRoutes) {
  LinkGraph graph = MakeGraph(
      kNodesTopology,
      {.devices = 4, .devices_per_node = 2, .port = {Bandwidth(300)}, .nic = {Bandwidth(25)}});
  const Route first = graph.FindRoute(DeviceId(0), DeviceId(3));
  EXPECT_EQ(Print(graph, first), "device0 -> switch2 (nic), switch2 -> device3 (nic)");
  EXPECT_EQ(graph.FindRoute(DeviceId(0), DeviceId(3)).links, first.links);
  const LinkGraph copy = graph;
  EXPECT_EQ(LinkGraph(copy).FindRoute(DeviceId(0), DeviceId(3)).links, first.links);
}

TEST(LinkGraph, WithinANodeThePortWinsOverAFasterNic) {
  LinkGraph graph = MakeGraph(
      kNodesTopology,
      {.devices = 4, .devices_per_node = 2, .port = {Bandwidth(10)}, .nic = {Bandwidth(25)}});
  EXPECT_EQ(Print(graph, graph.FindRoute(DeviceId(2), DeviceId(3))),
            "device2 -> switch1 (port), switch1 -> device3 (port)");
}

TEST(LinkGraph, TheMostLinksAreThoseOf2048DevicesFullyConnected) {
  EXPECT_LE(kFullyConnectedTopology.link_count({.devices = 2048}), LinkGraph::kMaxLinks);
  EXPECT_GT(kFullyConnectedTopology.link_count({.devices = 2049}), LinkGraph::kMaxLinks);
}

// 1,024 devices: the nodes' graph grows with the devices, not with their pairs.
TEST(LinkGraph, RoutesOfAThousandDevicesAreTheirPaths) {
  const Topology topology = *Topology::Create(
      kNodesTopology,
      {.devices = 1024, .devices_per_node = 8, .port = {Bandwidth(300)}, .nic = {Bandwidth(25)}});
  LinkGraph graph = *LinkGraph::Create(topology);
  EXPECT_EQ(graph.links().size(), 4 * 1024);
  EXPECT_EQ(graph.vertex_count(), 1024 + 128 + 1);
  for (int32_t to = 1; to < 1024; ++to) {
    EXPECT_EQ(graph.FindRoute(DeviceId(0), DeviceId(to)).path,
              topology.Path(DeviceId(0), DeviceId(to)));
  }
}

TEST(LinkGraph, TooManyLinksAreAnErrorAndNotAnExhaustedMachine) {
  const auto topology =
      Topology::Create(kFullyConnectedTopology, {.devices = 1 << 20, .port = {Bandwidth(25)}});
  EXPECT_EQ(LinkGraph::Create(*topology).status().ToString(),
            "RESOURCE_EXHAUSTED: a fully_connected topology of 1048576 devices has 1099510579200 "
            "links; wanted at most 4194304; try fewer devices, or a network model without shared "
            "links");
}

TEST(LinkGraphDeathTest, DevicesMustBeTwoAndConnected) {
  LinkGraph graph = MakeGraph(kDiamond, {.devices = 5});
  EXPECT_DEATH(graph.FindRoute(DeviceId(2), DeviceId(2)), "from device2 to device2 of 5");
  EXPECT_DEATH(graph.FindRoute(DeviceId(0), DeviceId(5)), "from device0 to device5 of 5");
  EXPECT_DEATH(graph.FindRoute(DeviceId(0), DeviceId(4)), "no route from device0 to device4");
}

}  // namespace
}  // namespace orrery::cluster
