#ifndef ORRERY_CLUSTER_TOPOLOGY_SHAPES_TEST_UTIL_H_
#define ORRERY_CLUSTER_TOPOLOGY_SHAPES_TEST_UTIL_H_

#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <random>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "cluster/link_graph.h"
#include "cluster/topologies.h"

// Shapes of every kind of topology, for what must hold of all of them.

namespace orrery::cluster {

inline constexpr PathInfo kFast = {Bandwidth(300), Duration(7)};
inline constexpr PathInfo kSlow = {Bandwidth(25), Duration(31)};
inline constexpr PathInfo kOther = {Bandwidth(70), Duration(3)};

// Of a test of each kind.
inline std::string KindName(const testing::TestParamInfo<const TopologyKind*>& info) {
  return std::string(info.param->name);
}

inline std::string Name(const Topology& topology) {
  const TopologyShape& shape = topology.shape();
  std::string name = absl::StrCat(
      topology.kind().name, " of ", shape.devices, " devices in nodes of ", shape.devices_per_node,
      " on ", shape.nics_per_node, " NICs and ", shape.boards_per_node, " boards, port ",
      shape.port.rate.bytes_per_second(), ", nic ", shape.nic.rate.bytes_per_second(), ", spine ",
      shape.spine.rate.bytes_per_second(), shape.one_way ? " one way" : "");
  for (const Level& level : shape.levels) {
    absl::StrAppend(&name, " x ", level.size, "^", level.parents, " kind ",
                    static_cast<int>(level.kind), " at ", level.speed.rate.bytes_per_second());
  }
  return name;
}

// Nodes and NICs of all sizes.
inline std::vector<TopologyShape> NodeShapes(int32_t most_devices, bool in_nodes,
                                             bool has_variants) {
  std::vector<TopologyShape> shapes;
  for (int32_t devices = 1; devices <= most_devices; ++devices) {
    for (int32_t per_node = 1; per_node <= (in_nodes ? devices : 1); ++per_node) {
      if (devices % per_node != 0) continue;
      for (const bool fast_port : {true, false}) {
        TopologyShape shape = {.devices = devices, .devices_per_node = per_node};
        shape.port = fast_port ? kFast : kSlow;
        shape.nic = fast_port ? kSlow : kFast;
        shape.spine = per_node % 2 == 0 ? kOther : kSlow;
        shape.host = kOther;
        shape.bridge = kOther;
        shape.one_way = fast_port;
        shapes.push_back(shape);
        if (!has_variants) continue;
        shape.one_way = !fast_port;
        shape.nics_per_node = per_node % 2 == 0 ? per_node / 2 : 1;
        shapes.push_back(shape);
        if (per_node % 2 != 0) continue;
        shape.boards_per_node = fast_port ? 2 : per_node;
        shapes.push_back(shape);
        shape.nics_per_node = 0;
        shapes.push_back(shape);
      }
    }
  }
  return shapes;
}

inline int32_t Draw(std::mt19937& random, int32_t least, int32_t most) {
  // std::uniform_int_distribution is not the same everywhere.
  return least + static_cast<int32_t>(random() % static_cast<uint32_t>(most - least + 1));
}

// Up to four levels, of one kind and speed or mixed, filled or partly filled.
inline std::vector<TopologyShape> LevelShapes(int32_t most_devices, size_t count) {
  std::mt19937 random(20260);
  std::vector<TopologyShape> shapes;
  while (shapes.size() < count) {
    TopologyShape shape;
    const bool mixed = random() % 2 == 0;
    const auto kind = static_cast<LevelKind>(Draw(random, 0, 4));
    for (int32_t levels = Draw(random, 1, 4); levels > 0; --levels) {
      Level level = {.size = Draw(random, 1, 5), .speed = kFast, .kind = kind};
      if (mixed) level.kind = static_cast<LevelKind>(Draw(random, 0, 4));
      if (mixed) level.speed = random() % 2 == 0 ? kSlow : kOther;
      level.parents = Draw(random, 1, 3);
      shape.levels.push_back(level);
      shape.devices *= level.size;
    }
    if (random() % 4 == 0 && shape.devices > 2) --shape.devices;
    if (shape.devices <= most_devices) shapes.push_back(shape);
  }
  return shapes;
}

// Rings with more links thrown in, over devices and switches.
inline std::vector<TopologyShape> GraphShapes(int32_t most_devices, size_t count) {
  std::mt19937 random(4);
  std::set<std::pair<int32_t, int32_t>> taken;
  std::vector<TopologyShape> shapes;
  while (shapes.size() < count) {
    GraphParts parts = {.devices = Draw(random, 1, most_devices), .switches = Draw(random, 0, 4)};
    const int32_t vertices = parts.devices + parts.switches;
    taken.clear();
    for (int32_t i = 0; i < (vertices > 1 ? 2 * vertices : 0); ++i) {
      const int32_t from = i < vertices ? i : Draw(random, 0, vertices - 1);
      const int32_t to = i < vertices ? (i + 1) % vertices : Draw(random, 0, vertices - 1);
      const PathInfo& speed = random() % 2 == 0 ? kFast : kSlow;
      if (from == to || !taken.emplace(from, to).second) continue;
      parts.links.push_back({VertexId(from), VertexId(to), speed, "link"});
    }
    TopologyShape shape = {.devices = parts.devices};
    shape.graph = std::make_shared<const LinkGraph>(*LinkGraph::Create(std::move(parts)));
    shapes.push_back(shape);
  }
  return shapes;
}

inline std::vector<TopologyShape> Shapes(const TopologyKind& kind, int32_t most_devices) {
  if (absl::StrContains(kind.parameters, "levels")) return LevelShapes(most_devices, 400);
  if (absl::StrContains(kind.parameters, "graph")) return GraphShapes(most_devices, 30);
  const bool has_variants = absl::StrContains(kind.parameters, "one_way") ||
                            absl::StrContains(kind.parameters, "nics_per_node");
  return NodeShapes(most_devices, absl::StrContains(kind.parameters, "devices_per_node"),
                    has_variants);
}

// The topologies of that kind over many shapes, as far as the kind takes them.
inline std::vector<Topology> Topologies(const TopologyKind& kind, int32_t most_devices) {
  std::vector<Topology> topologies;
  for (const TopologyShape& shape : Shapes(kind, most_devices)) {
    const auto topology = Topology::Create(kind, shape);
    if (topology.ok()) topologies.push_back(*topology);
    if (topologies.size() == 60) break;
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

}  // namespace orrery::cluster

#endif  // ORRERY_CLUSTER_TOPOLOGY_SHAPES_TEST_UTIL_H_
