#include <benchmark/benchmark.h>

#include <vector>

#include "cluster/cluster.h"
#include "cost_models/collectives/bound.h"
#include "cost_models/collectives/choice.h"

// Prices of collectives on a cluster of nodes of eight.

namespace orrery::cost_models {
namespace {

using cluster::DeviceId;

std::vector<DeviceId> Devices(int64_t count, int32_t stride = 1) {
  std::vector<DeviceId> devices;
  for (int32_t i = 0; i < count; ++i) devices.push_back(DeviceId(i * stride));
  return devices;
}

// One rank a node: every message takes two NICs.
void RingOfNodes(benchmark::State& state) {
  const cluster::Cluster cluster = *cluster::ParseCluster("dgx-h100:1024");
  const std::vector<DeviceId> group = Devices(state.range(0), 8);
  const CollectiveChoice ring = *CollectiveChoice::Parse("ring");
  for (auto _ : state) {
    benchmark::DoNotOptimize(
        FastestTime({.size = Bytes(64 << 20), .group = group}, cluster.topology, ring));
  }
}
BENCHMARK(RingOfNodes)->Arg(8)->Arg(1024)->Unit(benchmark::kMicrosecond);

// Eight ranks a node: eight rings.
void RingsOfAllDevices(benchmark::State& state) {
  const cluster::Cluster cluster = *cluster::ParseCluster("dgx-h100:128");
  const std::vector<DeviceId> group = Devices(state.range(0));
  const CollectiveChoice ring = *CollectiveChoice::Parse("ring");
  for (auto _ : state) {
    benchmark::DoNotOptimize(
        FastestTime({.size = Bytes(64 << 20), .group = group}, cluster.topology, ring));
  }
}
BENCHMARK(RingsOfAllDevices)->Arg(8)->Arg(1024)->Unit(benchmark::kMicrosecond);

// As many rings as a leaf switch or a row has devices.
void FastestOfLarge(benchmark::State& state, const char* spelling) {
  const cluster::Cluster cluster = *cluster::ParseCluster(spelling);
  const std::vector<DeviceId> group = Devices(cluster.size());
  for (auto _ : state) {
    benchmark::DoNotOptimize(
        FastestTime({.size = Bytes(64 << 20), .group = group}, cluster.topology));
  }
}
BENCHMARK_CAPTURE(FastestOfLarge, fat_tree, "fat-tree:100000@50GB/s,radix=64")
    ->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(FastestOfLarge, torus, "torus:50x50x10@50GB/s")->Unit(benchmark::kMillisecond);

void FastestOfAll(benchmark::State& state) {
  const cluster::Cluster cluster = *cluster::ParseCluster("dgx-h100:128");
  const std::vector<DeviceId> group = Devices(state.range(0));
  for (auto _ : state) {
    benchmark::DoNotOptimize(
        FastestTime({.size = Bytes(64 << 20), .group = group}, cluster.topology));
  }
}
BENCHMARK(FastestOfAll)->Arg(8)->Arg(1024)->Unit(benchmark::kMicrosecond);

// What `collective` does for all 1,024 ranks of a cluster: the fastest algorithm, and the bound.
void FastestAndBound(benchmark::State& state, const char* spelling,
                     CollectiveKind kind = CollectiveKind::kAllReduce) {
  const cluster::Cluster cluster = *cluster::ParseCluster(spelling);
  const std::vector<DeviceId> group = Devices(cluster.size());
  const CollectiveRequest request = {
      .kind = kind, .size = Bytes(64 << 20), .group = group, .only_busiest = true};
  for (auto _ : state) {
    const ChosenCollective chosen = *ChooseCollective(request, cluster.topology);
    const CollectiveCall& call = chosen.call;
    benchmark::DoNotOptimize(BandwidthBound(call.kind, call.size, chosen.group, call.ranks_a_node,
                                            {call.node_reduces, call.fabric_reduces},
                                            cluster.topology));
  }
}
BENCHMARK_CAPTURE(FastestAndBound, uniform, "uniform:1024@200Gbps")->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(FastestAndBound, dgx_h100, "dgx-h100:128")->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(FastestAndBound, fat_tree, "fat-tree:1024@50GB/s,radix=64")
    ->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(FastestAndBound, torus, "torus:32x32@50GB/s")->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(FastestAndBound, tpu_v4, "tpu-v4:8x8x16")->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(FastestAndBound, mesh, "mesh:32x32@50GB/s")->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(FastestAndBound, gb200_nvl72, "gb200-nvl72:14")->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(FastestAndBound, all_to_all_dgx_h100, "dgx-h100:128", CollectiveKind::kAllToAll)
    ->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(FastestAndBound, all_to_all_fat_tree, "fat-tree:1024@50GB/s,radix=64",
                  CollectiveKind::kAllToAll)
    ->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(FastestAndBound, all_to_all_torus, "torus:32x32@50GB/s",
                  CollectiveKind::kAllToAll)
    ->Unit(benchmark::kMillisecond);

// Every tensor of a group whose cost is known.
void TimeOfKnownCost(benchmark::State& state) {
  const cluster::Cluster cluster = *cluster::ParseCluster("dgx-h100:128");
  const std::vector<DeviceId> group = Devices(1024);
  const auto chosen =
      *ChooseCollective({.size = Bytes(64 << 20), .group = group}, cluster.topology);
  int64_t size = 0;
  for (auto _ : state) benchmark::DoNotOptimize(TimeOf(chosen.cost, Bytes(++size)));
}
BENCHMARK(TimeOfKnownCost)->Unit(benchmark::kMicrosecond);

}  // namespace
}  // namespace orrery::cost_models
