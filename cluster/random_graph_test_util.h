#ifndef ORRERY_CLUSTER_RANDOM_GRAPH_TEST_UTIL_H_
#define ORRERY_CLUSTER_RANDOM_GRAPH_TEST_UTIL_H_

#include <cstdint>
#include <memory>
#include <random>
#include <set>
#include <utility>
#include <vector>

#include "cluster/link_graph.h"
#include "cluster/topologies.h"
#include "support/check.h"

// For tests: explicit graphs, among them random connected ones.

namespace orrery::cluster {

/// 50 GB/s after 500 ns.
inline constexpr PathInfo kWire = {Bandwidth(50'000'000'000), Duration(500'000)};

/// Wires between vertices, both ways.
inline std::vector<Link> WiresBetween(const std::vector<std::pair<int32_t, int32_t>>& pairs,
                                      const PathInfo& speed = kWire) {
  std::vector<Link> links;
  for (const auto& [a, b] : pairs) {
    links.push_back({VertexId(a), VertexId(b), speed, "wire"});
    links.push_back({VertexId(b), VertexId(a), speed, "wire"});
  }
  return links;
}

/// A topology that is an explicit graph.
inline Topology GraphOf(GraphParts parts) {
  const int32_t devices = parts.devices;
  auto graph = LinkGraph::Create(std::move(parts));
  ORRERY_CHECK(graph.ok()) << graph.status().message();
  return *Topology::Create(
      kGraphTopology,
      {.devices = devices, .graph = std::make_shared<const LinkGraph>(*std::move(graph))});
}

/// So many devices in a random tree, and up to `extra` wires more between others of them.
inline Topology RandomGraph(int32_t devices, int32_t extra, std::mt19937& random) {
  const auto below = [&](int32_t count) {
    return static_cast<int32_t>(random() % static_cast<uint32_t>(count));
  };
  std::vector<int32_t> number(static_cast<size_t>(devices));
  for (int32_t i = 0; i < devices; ++i) number[static_cast<size_t>(i)] = i;
  for (int32_t i = devices - 1; i > 0; --i) {
    std::swap(number[static_cast<size_t>(i)], number[static_cast<size_t>(below(i + 1))]);
  }
  std::set<std::pair<int32_t, int32_t>> pairs;
  const auto add = [&](int32_t a, int32_t b) {
    const int32_t first = number[static_cast<size_t>(a)], second = number[static_cast<size_t>(b)];
    if (first != second) pairs.insert(std::minmax(first, second));
  };
  for (int32_t i = 1; i < devices; ++i) add(i, below(i));
  for (int32_t i = 0; i < extra; ++i) add(below(devices), below(devices));
  return GraphOf({.devices = devices, .links = WiresBetween({pairs.begin(), pairs.end()})});
}

/// All devices of a topology.
inline std::vector<DeviceId> AllDevices(const Topology& topology) {
  std::vector<DeviceId> devices;
  for (int32_t i = 0; i < topology.devices(); ++i) devices.push_back(DeviceId(i));
  return devices;
}

}  // namespace orrery::cluster

#endif  // ORRERY_CLUSTER_RANDOM_GRAPH_TEST_UTIL_H_
