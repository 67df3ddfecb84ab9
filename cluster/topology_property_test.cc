#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <boost/graph/adjacency_list.hpp>
#include <boost/graph/edmonds_karp_max_flow.hpp>
#include <limits>
#include <map>
#include <random>
#include <set>
#include <span>
#include <string>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "cluster/link_graph.h"
#include "cluster/link_route_test_util.h"
#include "cluster/topologies.h"
#include "cluster/topology_shapes_test_util.h"

// What holds for every line of topologies.def and every shape that it takes. A new topology is
// tested here without an edit.

namespace orrery::cluster {
namespace topology_property_test_cc {
namespace {

// That the links lead from one device to the other, and to no vertex twice.
void ExpectEndToEnd(const Topology& topology, DeviceId from, DeviceId to,
                    std::span<const LinkNumber> route) {
  VertexId at(from.index());
  std::set<VertexId> seen = {at};
  for (const LinkNumber link : route) {
    EXPECT_EQ(topology.LinkAt(link).from, at) << Name(topology) << ": " << topology.LinkName(link);
    at = topology.LinkAt(link).to;
    EXPECT_TRUE(seen.insert(at).second) << Name(topology) << ": " << topology.LinkName(link);
  }
  EXPECT_EQ(at, VertexId(to.index())) << Name(topology) << ", " << from << " to " << to;
}

// The most that the devices in `senders` (a bit each) can send to the others at once.
int64_t MaxFlow(const LinkGraph& links, int32_t devices, uint32_t senders) {
  using Traits = boost::adjacency_list_traits<boost::vecS, boost::vecS, boost::directedS>;
  using Reverse = boost::property<boost::edge_reverse_t, Traits::edge_descriptor>;
  using Residual = boost::property<boost::edge_residual_capacity_t, int64_t, Reverse>;
  using Capacity = boost::property<boost::edge_capacity_t, int64_t, Residual>;
  using Graph = boost::adjacency_list<boost::vecS, boost::vecS, boost::directedS,
                                      boost::no_property, Capacity>;
  const auto source = static_cast<size_t>(links.vertex_count());
  const size_t sink = source + 1;
  Graph graph(sink + 1);
  const auto add = [&graph](size_t from, size_t to, int64_t capacity) {
    const auto there = boost::add_edge(from, to, graph).first;
    const auto back = boost::add_edge(to, from, graph).first;
    boost::put(boost::edge_capacity, graph, there, capacity);
    boost::put(boost::edge_capacity, graph, back, 0);
    boost::put(boost::edge_reverse, graph, there, back);
    boost::put(boost::edge_reverse, graph, back, there);
  };
  for (const Link& link : links.links().rows()) {
    add(static_cast<size_t>(link.from.index()), static_cast<size_t>(link.to.index()),
        link.speed.rate.bytes_per_second());
  }
  for (int32_t device = 0; device < devices; ++device) {
    const auto vertex = static_cast<size_t>(device);
    const bool sends = (senders >> device & 1) != 0;
    add(sends ? source : vertex, sends ? vertex : sink, std::numeric_limits<int32_t>::max());
  }
  return boost::edmonds_karp_max_flow(graph, source, sink);
}

// Over the halves that have all of `always` in the sending one.
int64_t LeastFlowBetweenHalves(const Topology& topology, uint32_t always = 0) {
  const LinkGraph links = *LinkGraph::Create(topology);
  int64_t least = std::numeric_limits<int64_t>::max();
  for (uint32_t senders = 0; senders < uint32_t{1} << topology.devices(); ++senders) {
    if (std::popcount(senders) != topology.devices() / 2) continue;
    if ((senders & always) != always) continue;
    least = std::min(least, MaxFlow(links, topology.devices(), senders));
  }
  return least;
}

class EveryTopology : public testing::TestWithParam<const TopologyKind*> {};

TEST_P(EveryTopology, SaysWhatItIsAndTakesSomeShapes) {
  EXPECT_FALSE(GetParam()->name.empty());
  EXPECT_FALSE(GetParam()->summary.empty());
  EXPECT_GE(Topologies(*GetParam(), 8).size(), 8u);
}

TEST_P(EveryTopology, HasTheLinksThatItCounts) {
  for (const Topology& topology : Topologies(*GetParam(), 12)) {
    EXPECT_EQ(LinkGraph::Create(topology)->links().size(), topology.link_count()) << Name(topology);
  }
}

TEST_P(EveryTopology, HasLinksWithTwoEndsAndOneKind) {
  for (const Topology& topology : Topologies(*GetParam(), 12)) {
    const LinkGraph graph = *LinkGraph::Create(topology);
    std::set<std::string> names;
    for (int32_t i = 0; i < graph.links().size(); ++i) {
      const Link& link = graph.links()[LinkId(i)];
      EXPECT_NE(link.from, link.to) << Name(topology);
      EXPECT_TRUE(link.from.valid() && link.to.valid()) << Name(topology);
      EXPECT_GT(link.speed.rate, Bandwidth(0)) << Name(topology);
      EXPECT_TRUE(names.insert(graph.LinkName(LinkId(i))).second) << graph.LinkName(LinkId(i));
    }
  }
}

TEST_P(EveryTopology, ConnectsEveryPairByARouteOfLinksEndToEnd) {
  for (const Topology& topology : Topologies(*GetParam(), 12)) {
    const LinkGraph graph = *LinkGraph::Create(topology);
    ForEachPair(topology.devices(), [&](DeviceId from, DeviceId to) {
      VertexId at(from.index());
      std::set<VertexId> seen = {at};
      for (const LinkId link : FindRoute(graph, from, to).links) {
        ASSERT_EQ(graph.links()[link].from, at) << Name(topology);
        at = graph.links()[link].to;
        ASSERT_TRUE(seen.insert(at).second) << Name(topology) << ": twice at " << at;
      }
      EXPECT_EQ(at, VertexId(to.index())) << Name(topology);
    });
  }
}

TEST_P(EveryTopology, RouteIsLinksFromEndToEndAndAsFewAsASearchFinds) {
  for (const Topology& topology : Topologies(*GetParam(), 12)) {
    const LinkGraph graph = *LinkGraph::Create(topology);
    ForEachPair(topology.devices(), [&](DeviceId from, DeviceId to) {
      std::vector<LinkNumber> route = {-1};
      topology.AppendRoute(from, to, route);
      EXPECT_EQ(route.front(), -1) << "appends";
      const size_t fewest = FindRoute(graph, from, to).links.size();
      EXPECT_GE(route.size() - 1, fewest) << Name(topology) << ", " << from << " to " << to;
      // Between boards of a node NICs were a shorter way than the bridges.
      const TopologyShape& shape = topology.shape();
      const bool one_node =
          from.index() / shape.devices_per_node == to.index() / shape.devices_per_node;
      const bool detours = GetParam() == &kNodesTopology && shape.boards_per_node > 1 && one_node;
      if (GetParam()->fewest_links && !detours) {
        EXPECT_EQ(route.size() - 1, fewest) << Name(topology) << ", " << from << " to " << to;
      }
      ExpectEndToEnd(topology, from, to, std::span(route).subspan(1));
    });
  }
}

TEST_P(EveryTopology, PathIsTheLinksOfTheRouteJoined) {
  for (const Topology& topology : Topologies(*GetParam(), 12)) {
    ForEachPair(topology.devices(), [&](DeviceId from, DeviceId to) {
      std::vector<LinkNumber> route;
      topology.AppendRoute(from, to, route);
      PathInfo path = topology.LinkAt(route.front()).speed;
      for (size_t i = 1; i < route.size(); ++i) {
        path = Join(path, topology.LinkAt(route[i]).speed);
      }
      EXPECT_EQ(topology.Path(from, to), path) << Name(topology) << ", " << from << " to " << to;
    });
  }
}

// Of every kind of links that the topology has: those are faster, and no others, and paths see it.
TEST_P(EveryTopology, FasterLinksAreThoseOfTheirKind) {
  for (const Topology& topology : Topologies(*GetParam(), 12)) {
    std::set<std::string> kinds;
    for (LinkNumber link = 0; link < topology.link_count(); ++link) {
      kinds.insert(std::string(topology.LinkAt(link).kind));
    }
    for (const std::string& kind : kinds) {
      const Topology faster = topology.WithFasterLinks(kind, 3);
      for (LinkNumber link = 0; link < topology.link_count(); ++link) {
        PathInfo speed = topology.LinkAt(link).speed;
        if (topology.LinkAt(link).kind == kind) {
          speed.rate = Bandwidth(3 * speed.rate.bytes_per_second());
        }
        EXPECT_EQ(faster.LinkAt(link).speed, speed) << topology.LinkName(link);
      }
      for (int32_t to = 1; to < topology.devices(); ++to) {
        std::vector<LinkNumber> route;
        faster.AppendRoute(DeviceId(0), DeviceId(to), route);
        PathInfo joined = faster.LinkAt(route[0]).speed;
        for (const LinkNumber link : route) {
          joined.rate = std::min(joined.rate, faster.LinkAt(link).speed.rate);
        }
        EXPECT_EQ(faster.Path(DeviceId(0), DeviceId(to)).rate, joined.rate) << to;
      }
    }
  }
}

// Links of routes to links, one to one, alike; and some rotation is known wherever one is looked
// for. WithFasterLinks goes by kinds.
TEST_P(EveryTopology, RotationsMoveRoutesOntoRoutes) {
  int known = 0;
  for (const Topology& topology : Topologies(*GetParam(), 24)) {
    for (const Rotation& rotation : topology.Rotations()) {
      known += rotation.size > 1;
      std::map<LinkNumber, LinkNumber> after, before;
      std::map<VertexId, VertexId> vertex_after, vertex_before;
      ForEachPair(topology.devices(), [&](DeviceId from, DeviceId to) {
        std::vector<LinkNumber> route, moved;
        topology.AppendRoute(from, to, route);
        topology.AppendRoute(rotation.Of(from), rotation.Of(to), moved);
        ASSERT_EQ(route.size(), moved.size()) << Name(topology);
        for (size_t i = 0; i < route.size(); ++i) {
          const Link a = topology.LinkAt(route[i]), b = topology.LinkAt(moved[i]);
          EXPECT_TRUE(a.speed == b.speed && a.kind == b.kind) << Name(topology);
          EXPECT_EQ(after.emplace(route[i], moved[i]).first->second, moved[i]) << Name(topology);
          EXPECT_EQ(before.emplace(moved[i], route[i]).first->second, route[i]) << Name(topology);
          EXPECT_EQ(vertex_after.emplace(a.to, b.to).first->second, b.to) << Name(topology);
          EXPECT_EQ(vertex_before.emplace(b.to, a.to).first->second, a.to) << Name(topology);
          EXPECT_EQ(topology.SwitchReduces(a.to), topology.SwitchReduces(b.to));
        }
      });
    }
  }
  EXPECT_EQ(known > 0, GetParam() != &kMeshTopology && GetParam() != &kGraphTopology);
}

TEST_P(EveryTopology, BisectionIsTheLeastFlowBetweenTwoHalves) {
  for (const Topology& topology : Topologies(*GetParam(), 8)) {
    if (!topology.Bisection().has_value()) continue;
    EXPECT_EQ(topology.Bisection()->bytes_per_second(), LeastFlowBetweenHalves(topology))
        << Name(topology);
  }
}

// As the torus is alike in all places, device 0 may be taken to send.
TEST(Bisection, OfATorusTooLargeToTryAllShapes) {
  TopologyShape shape = {.devices = 12, .levels = {{4, kFast}, {3, kFast}}};
  const Topology torus = *Topology::Create(kTorusTopology, shape);
  EXPECT_EQ(torus.Bisection()->bytes_per_second(), LeastFlowBetweenHalves(torus, 1));
}

TEST_P(EveryTopology, AnswersForAMillionDevices) {
  const PathInfo speed = {Bandwidth::FromGigabytesPerSecond(450), Duration(1)};
  TopologyShape shape = {.devices = kMaxDevices, .devices_per_node = 8};
  shape.port = shape.nic = shape.spine = shape.host = speed;
  if (absl::StrContains(GetParam()->parameters, "levels")) {
    const LevelKind kind = GetParam() == &kMeshTopology ? LevelKind::kLine : LevelKind::kRing;
    for (const int32_t size : {64, 128, 128}) shape.levels.push_back({size, speed, kind, 16});
  }
  const auto topology = Topology::Create(*GetParam(), shape);
  if (GetParam() == &kGraphTopology) GTEST_SKIP() << "one cannot list so many links";
  ASSERT_TRUE(topology.ok()) << topology.status();
  const DeviceId last(kMaxDevices - 1);
  const PathInfo path = topology->Path(DeviceId(0), last);
  EXPECT_EQ(path.rate, speed.rate);
  EXPECT_GE(topology->Bisection().value_or(path.rate), path.rate);
  std::vector<LinkNumber> route;
  topology->AppendRoute(DeviceId(0), last, route);
  EXPECT_EQ(Duration(static_cast<int64_t>(route.size())), path.latency);
  ExpectEndToEnd(*topology, DeviceId(0), last, route);
}

INSTANTIATE_TEST_SUITE_P(Topologies, EveryTopology, testing::ValuesIn(AllTopologies()), KindName);

}  // namespace
}  // namespace topology_property_test_cc
}  // namespace orrery::cluster
