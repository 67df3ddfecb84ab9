#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <boost/graph/adjacency_list.hpp>
#include <boost/graph/edmonds_karp_max_flow.hpp>
#include <limits>
#include <set>
#include <string>

#include "absl/strings/str_cat.h"
#include "cluster/link_graph.h"
#include "cluster/topology.h"

// What holds for every line of topologies.def and every shape that it takes. A new topology is
// tested here without an edit.

namespace orrery::cluster {
namespace {

std::string Name(const Topology& topology) {
  const TopologyShape& shape = topology.shape();
  return absl::StrCat(shape.devices, " devices in nodes of ", shape.devices_per_node, ", port ",
                      shape.port.rate.bytes_per_second(), ", nic ",
                      shape.nic.rate.bytes_per_second());
}

// The topologies of that kind over many shapes, as far as the kind takes them.
std::vector<Topology> Topologies(const TopologyKind& kind, int32_t most_devices) {
  const PathInfo fast = {Bandwidth(300), Duration(7)};
  const PathInfo slow = {Bandwidth(25), Duration(31)};
  std::vector<Topology> topologies;
  for (int32_t devices = 1; devices <= most_devices; ++devices) {
    for (int32_t devices_per_node = 1; devices_per_node <= devices; ++devices_per_node) {
      for (const bool fast_port : {true, false}) {
        const auto topology = Topology::Create(kind, {.devices = devices,
                                                      .devices_per_node = devices_per_node,
                                                      .port = fast_port ? fast : slow,
                                                      .nic = fast_port ? slow : fast});
        if (topology.ok()) topologies.push_back(*topology);
      }
    }
  }
  return topologies;
}

template <typename Check>
void ForEachPair(int32_t devices, Check check) {
  for (int32_t from = 0; from < devices; ++from) {
    for (int32_t to = 0; to < devices; ++to) {
      if (from != to) check(DeviceId(from), DeviceId(to));
    }
  }
}

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

int64_t LeastFlowBetweenHalves(const Topology& topology) {
  const LinkGraph links = *LinkGraph::Create(topology);
  int64_t least = std::numeric_limits<int64_t>::max();
  for (uint32_t senders = 0; senders < uint32_t{1} << topology.devices(); ++senders) {
    if (std::popcount(senders) != topology.devices() / 2) continue;
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
    LinkGraph graph = *LinkGraph::Create(topology);
    ForEachPair(topology.devices(), [&](DeviceId from, DeviceId to) {
      VertexId at(from.index());
      std::set<VertexId> seen = {at};
      for (const LinkId link : graph.FindRoute(from, to).links) {
        ASSERT_EQ(graph.links()[link].from, at) << Name(topology);
        at = graph.links()[link].to;
        ASSERT_TRUE(seen.insert(at).second) << Name(topology) << ": twice at " << at;
      }
      EXPECT_EQ(at, VertexId(to.index())) << Name(topology);
    });
  }
}

TEST_P(EveryTopology, PathIsWhatTheRouteMeets) {
  for (const Topology& topology : Topologies(*GetParam(), 12)) {
    LinkGraph graph = *LinkGraph::Create(topology);
    ForEachPair(topology.devices(), [&](DeviceId from, DeviceId to) {
      const Route route = graph.FindRoute(from, to);
      Bandwidth narrowest = graph.links()[route.links.front()].speed.rate;
      Duration latency;
      for (const LinkId link : route.links) {
        narrowest = std::min(narrowest, graph.links()[link].speed.rate);
        latency += graph.links()[link].speed.latency;
      }
      const PathInfo path = topology.Path(from, to);
      EXPECT_EQ(path.rate, narrowest) << Name(topology) << ", " << from << " to " << to;
      EXPECT_EQ(path.latency, latency) << Name(topology) << ", " << from << " to " << to;
      EXPECT_EQ(route.path, path) << Name(topology) << ", " << from << " to " << to;
    });
  }
}

TEST_P(EveryTopology, RouteIsLinksFromEndToEndAndAsFewAsASearchFinds) {
  for (const Topology& topology : Topologies(*GetParam(), 12)) {
    LinkGraph graph = *LinkGraph::Create(topology);
    ForEachPair(topology.devices(), [&](DeviceId from, DeviceId to) {
      std::vector<LinkNumber> route = {-1};
      topology.AppendRoute(from, to, route);
      EXPECT_EQ(route.front(), -1) << "appends";
      EXPECT_EQ(route.size(), 1 + graph.FindRoute(from, to).links.size()) << Name(topology);
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

TEST_P(EveryTopology, BisectionIsTheLeastFlowBetweenTwoHalves) {
  for (const Topology& topology : Topologies(*GetParam(), 8)) {
    if (!topology.Bisection().has_value()) continue;
    EXPECT_EQ(topology.Bisection()->bytes_per_second(), LeastFlowBetweenHalves(topology))
        << Name(topology);
  }
}

TEST_P(EveryTopology, AnswersForAMillionDevices) {
  const auto topology =
      Topology::Create(*GetParam(), {.devices = 1 << 20,
                                     .devices_per_node = 8,
                                     .port = {Bandwidth::FromGigabytesPerSecond(450), Duration(1)},
                                     .nic = {Bandwidth::FromGigabytesPerSecond(50), Duration(1)}});
  ASSERT_TRUE(topology.ok()) << topology.status();
  const PathInfo path = topology->Path(DeviceId(0), DeviceId((1 << 20) - 1));
  EXPECT_GT(path.rate, Bandwidth(0));
  EXPECT_GE(topology->Bisection().value_or(path.rate), path.rate);
}

INSTANTIATE_TEST_SUITE_P(Topologies, EveryTopology, testing::ValuesIn(AllTopologies()),
                         [](const testing::TestParamInfo<const TopologyKind*>& info) {
                           return std::string(info.param->name);
                         });

}  // namespace
}  // namespace orrery::cluster
