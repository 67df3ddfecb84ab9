#include "cluster/link_graph.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <thread>
#include <utility>

#include "absl/strings/str_join.h"
#include "cluster/link_route_test_util.h"
#include "cluster/topologies.h"

namespace orrery::cluster {
namespace link_graph_test_cc {
namespace {

// A graph of four devices that no kind of topology describes:
//
//   device0 -> device1 -> device3    narrow, slow
//   device0 -> device2 -> device3    wide, fast
//   device3 -> device0
GraphParts Diamond() {
  const PathInfo narrow = {Bandwidth(10), Duration(5)};
  const PathInfo wide = {Bandwidth(90), Duration(1)};
  return {.devices = 4,
          .links = {{VertexId(3), VertexId(0), wide, "back"},
                    {VertexId(0), VertexId(2), wide, "wide"},
                    {VertexId(2), VertexId(3), wide, "wide"},
                    {VertexId(0), VertexId(1), narrow, "narrow"},
                    {VertexId(1), VertexId(3), wide, "wide"}}};
}

LinkGraph MakeGraph(const TopologyKind& kind, const TopologyShape& shape) {
  auto graph = LinkGraph::Create(*Topology::Create(kind, shape));
  EXPECT_TRUE(graph.ok()) << graph.status();
  return *std::move(graph);
}

std::string Print(const LinkGraph& graph, const Route& route) {
  return absl::StrJoin(route.links, ", ",
                       [&](std::string* out, LinkId link) { out->append(graph.LinkName(link)); });
}

TEST(LinkGraph, OfRoutesOfEquallyManyLinksTheWidestWins) {
  const LinkGraph graph = *LinkGraph::Create(Diamond());
  const Route route = FindRoute(graph, DeviceId(0), DeviceId(3));
  EXPECT_EQ(Print(graph, route), "device0 -> device2 (wide), device2 -> device3 (wide)");
  EXPECT_EQ(route.path, (PathInfo{Bandwidth(90), Duration(2)}));
}

// By the hash of (0, 3); it must never change, as predictions would.
TEST(LinkGraph, OfRoutesEquallyWideAPairAlwaysTakesOne) {
  GraphParts parts = Diamond();
  for (Link& link : parts.links) link.speed.rate = Bandwidth(90);
  const LinkGraph graph = *LinkGraph::Create(parts);
  EXPECT_EQ(Print(graph, FindRoute(graph, DeviceId(0), DeviceId(3))),
            "device0 -> device2 (wide), device2 -> device3 (wide)");
}

// 16 devices on each of two switches that 8 others join, each by two links to either.
TEST(LinkGraph, PairsSpreadOverEquallyShortRoutes) {
  GraphParts parts = {.devices = 32, .switches = 10};
  const auto connect = [&parts](int32_t a, int32_t b) {
    parts.links.push_back({VertexId(a), VertexId(b), {Bandwidth(1)}, "uplink"});
    parts.links.push_back({VertexId(b), VertexId(a), {Bandwidth(1)}, "uplink"});
  };
  for (int32_t device = 0; device < 32; ++device) connect(device, 32 + device / 16);
  for (int32_t i = 0; i < 32; ++i) connect(32 + i % 2, 34 + i / 4);
  const LinkGraph graph = *LinkGraph::Create(std::move(parts));
  std::map<LinkId, int> pairs;
  for (int32_t from = 0; from < 16; ++from) {
    for (int32_t to = 16; to < 32; ++to) {
      const Route route = FindRoute(graph, DeviceId(from), DeviceId(to));
      ASSERT_EQ(route.links.size(), 4u);
      ++pairs[route.links[1]];
    }
  }
  EXPECT_EQ(pairs.size(), 16u) << "all links up";
  for (const auto& [link, count] : pairs) {
    EXPECT_GE(count, 6) << graph.LinkName(link) << ": about 256 / 16";
    EXPECT_LE(count, 30) << graph.LinkName(link);
  }
}

TEST(LinkGraph, ManyThreadsMayAsk) {
  const LinkGraph graph = *LinkGraph::Create(Diamond());
  std::vector<std::thread> threads;
  std::vector<std::vector<LinkNumber>> routes(8);
  for (auto& route : routes) {
    threads.emplace_back([&graph, &route] {
      for (int32_t to = 1; to < 4; ++to) graph.AppendRoute(DeviceId(0), DeviceId(to), route);
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const auto& route : routes) EXPECT_EQ(route, routes.front());
}

TEST(LinkGraph, LinksHaveADirection) {
  LinkGraph graph = *LinkGraph::Create(Diamond());
  EXPECT_EQ(Print(graph, FindRoute(graph, DeviceId(3), DeviceId(0))), "device3 -> device0 (back)");
  EXPECT_EQ(FindRoute(graph, DeviceId(1), DeviceId(2)).links.size(), 3u);
}

TEST(LinkGraph, LinksAreSortedWhateverTheOrderTheyCameIn) {
  const LinkGraph graph = *LinkGraph::Create(Diamond());
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
  const Route first = FindRoute(graph, DeviceId(0), DeviceId(3));
  EXPECT_EQ(Print(graph, first), "device0 -> switch2 (nic), switch2 -> device3 (nic)");
  EXPECT_EQ(FindRoute(graph, DeviceId(0), DeviceId(3)).links, first.links);
  const LinkGraph moved = std::move(graph);
  EXPECT_EQ(FindRoute(moved, DeviceId(0), DeviceId(3)).links, first.links);
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
  for (int32_t to = 1; to < 1024; to += 31) {
    EXPECT_EQ(FindRoute(graph, DeviceId(0), DeviceId(to)).path,
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

std::string ErrorOf(GraphParts parts) {
  return std::string(LinkGraph::Create(std::move(parts)).status().message());
}

TEST(LinkGraph, ImpossibleGraphsAreErrors) {
  GraphParts parts = Diamond();
  parts.devices = 5;
  EXPECT_EQ(ErrorOf(parts),
            "no way leads from device4 to device0; wanted links between all devices");
  parts = Diamond();
  parts.links[0].to = VertexId(4);
  EXPECT_EQ(ErrorOf(parts), "link 0: got vertex3 to vertex4; wanted two of 4 vertices");
  parts = Diamond();
  parts.links[2].speed.rate = Bandwidth(0);
  EXPECT_EQ(ErrorOf(parts),
            "link 2: got 0 bytes/s after 1 ps; wanted a positive rate and no negative latency");
  parts = Diamond();
  parts.devices = 0;
  EXPECT_THAT(ErrorOf(parts), testing::StartsWith("got 0 devices and 0 switches; wanted 1 to"));
  parts = Diamond();
  parts.links.erase(parts.links.begin());
  EXPECT_EQ(ErrorOf(parts),
            "no way leads from device1 to device0; wanted links between all devices");
}

TEST(LinkGraphDeathTest, DevicesMustBeTwo) {
  const LinkGraph graph = *LinkGraph::Create(Diamond());
  EXPECT_DEATH(FindRoute(graph, DeviceId(2), DeviceId(2)), "from device2 to device2 of 4");
  EXPECT_DEATH(FindRoute(graph, DeviceId(0), DeviceId(5)), "from device0 to device5 of 4");
}

// Each of three links side by side, and then the first again; way 0 is that of messages.
TEST(LinkGraph, HasAWayForEachOfLinksSideBySide) {
  const PathInfo speed = {Bandwidth(90), Duration(1)};
  const LinkGraph graph = *LinkGraph::Create({.devices = 2,
                                              .links = {{VertexId(0), VertexId(1), speed, "a"},
                                                        {VertexId(0), VertexId(1), speed, "b"},
                                                        {VertexId(0), VertexId(1), speed, "c"},
                                                        {VertexId(1), VertexId(0), speed, "a"}}});
  std::vector<LinkNumber> ways, message;
  for (int32_t way = 0; way < 4; ++way) graph.AppendRoute(DeviceId(0), DeviceId(1), ways, way);
  graph.AppendRoute(DeviceId(0), DeviceId(1), message);
  ASSERT_EQ(ways.size(), 4u);
  EXPECT_EQ(ways[0], message[0]);
  EXPECT_EQ(ways[3], ways[0]);
  ways.pop_back();
  EXPECT_THAT(ways, ::testing::UnorderedElementsAre(0, 1, 2));
}

}  // namespace
}  // namespace link_graph_test_cc
}  // namespace orrery::cluster
