// Routes per second of each topology at 16,384 devices, between random pairs: what pricing a
// collective and lowering a program ask for. An explicit graph has its searches done before.

#include <benchmark/benchmark.h>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "cluster/cluster.h"
#include "cluster/link_graph.h"

namespace orrery::cluster {
namespace {

std::vector<std::pair<DeviceId, DeviceId>> Pairs(int32_t devices) {
  std::mt19937 random(1);
  std::vector<std::pair<DeviceId, DeviceId>> pairs;
  while (pairs.size() < 4096) {
    const auto draw = [&] {
      return DeviceId(static_cast<int32_t>(random() % static_cast<uint32_t>(devices)));
    };
    const DeviceId from = draw();
    const DeviceId to = draw();
    if (from != to) pairs.emplace_back(from, to);
  }
  return pairs;
}

void AskRoutes(benchmark::State& state, const Topology& topology) {
  const auto pairs = Pairs(topology.devices());
  std::vector<LinkNumber> route;
  size_t links = 0, i = 0;
  for (auto _ : state) {
    route.clear();
    const auto& [from, to] = pairs[i++ % pairs.size()];
    topology.AppendRoute(from, to, route);
    links += route.size();
  }
  state.SetItemsProcessed(state.iterations());
  state.counters["links"] =
      benchmark::Counter(static_cast<double>(links), benchmark::Counter::kAvgIterations);
}

void BM_Route(benchmark::State& state, const std::string& spec) {
  AskRoutes(state, ParseCluster(spec).value().topology);
}

void BM_Path(benchmark::State& state, const std::string& spec) {
  const Topology topology = ParseCluster(spec).value().topology;
  const auto pairs = Pairs(topology.devices());
  size_t i = 0;
  for (auto _ : state) {
    const auto& [from, to] = pairs[i++ % pairs.size()];
    benchmark::DoNotOptimize(topology.Path(from, to));
  }
}

constexpr char kTree[] = "fat-tree:16384@50GB/s,radix=64,oversubscription=2";

BENCHMARK_CAPTURE(BM_Route, fat_tree, kTree);
BENCHMARK_CAPTURE(BM_Route, nodes, "dgx-h100:2048");
BENCHMARK_CAPTURE(BM_Route, rails, "dgx-h100:2048,rails");
BENCHMARK_CAPTURE(BM_Route, torus, "torus:16x32x32@50GB/s");
BENCHMARK_CAPTURE(BM_Route, dragonfly, "dragonfly:8x16x128@25GB/s");
BENCHMARK_CAPTURE(BM_Route, product, "product:switch(8)@450GB/s,switch(2048)@50GB/s");
BENCHMARK_CAPTURE(BM_Path, fat_tree, kTree);
BENCHMARK_CAPTURE(BM_Path, nodes, "dgx-h100:2048");

// A fat tree of 1,024 devices as a list of links.
void BM_RouteInGraph(benchmark::State& state) {
  const Topology tree = ParseCluster("fat-tree:1024@50GB/s,radix=64").value().topology;
  GraphParts parts = {.devices = tree.devices()};
  int32_t vertices = tree.devices();
  for (LinkNumber link = 0; link < tree.link_count(); ++link) {
    parts.links.push_back(tree.LinkAt(link));
    vertices = std::max(vertices, parts.links.back().to.index() + 1);
  }
  parts.switches = vertices - parts.devices;
  const Topology topology =
      Topology::Create(
          **std::find_if(AllTopologies().begin(), AllTopologies().end(),
                         [](const TopologyKind* kind) { return kind->name == "graph"; }),
          {.devices = tree.devices(),
           .graph = std::make_shared<const LinkGraph>(LinkGraph::Create(std::move(parts)).value())})
          .value();
  std::vector<LinkNumber> route;
  for (int32_t to = 1; to < topology.devices(); ++to) {
    topology.AppendRoute(DeviceId(0), DeviceId(to), route);
  }
  AskRoutes(state, topology);
}
BENCHMARK(BM_RouteInGraph);

}  // namespace
}  // namespace orrery::cluster
