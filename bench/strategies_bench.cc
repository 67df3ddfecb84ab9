// Milliseconds to choose the strategies of a whole graph: a chain with skips of 256 nodes with 16
// strategies each, with and without memory limits; a square; a node that all read; 24 equal layers
// of 40 nodes, one by one and composed. Small enough to run among the tests; for larger graphs
// change kNodes.

#include <benchmark/benchmark.h>

#include <cstdint>
#include <random>

#include "transforms/strategies/random_graph_test_util.h"
#include "transforms/strategies/strategy_graph.h"

namespace orrery::transforms::strategies {
namespace {

constexpr int32_t kNodes = 256;
constexpr int32_t kLayers = 24;

// Each node follows the one before it; every third is also read some nodes later.
StrategyGraph Chain(int32_t nodes, int32_t strategies, int32_t furthest) {
  std::mt19937 random(1);
  StrategyGraph graph;
  for (int32_t i = 0; i < nodes; ++i) {
    AddRandomNode(graph, strategies, random);
    if (i > 0) AddRandomEdge(graph, i - 1, i, 0, random);
    const int32_t from = i - Draw(random, 2, furthest);
    if (i % 3 == 0 && from >= 0) AddRandomEdge(graph, from, i, 0, random);
  }
  return graph;
}

void Report(benchmark::State& state, const StrategyChoice& choice) {
  state.counters["cost"] = choice.cost;
  state.counters["gap"] = choice.cost - choice.bound;
  state.counters["labels"] = static_cast<double>(choice.labels);
}

void Solve(benchmark::State& state, const StrategyGraph& graph, const SolveOptions& options = {}) {
  StrategyChoice choice;
  for (auto _ : state) choice = SolveStrategies(graph, options).value();
  Report(state, choice);
}

void BM_Chain(benchmark::State& state) {
  Solve(state, Chain(kNodes, 16, static_cast<int32_t>(state.range(0))));
}
BENCHMARK(BM_Chain)->ArgName("skip")->Arg(3)->Arg(12)->Unit(benchmark::kMillisecond);

// One budget for all nodes. The cheapest choice takes 20 a node.
void BM_ChainWithinMemory(benchmark::State& state) {
  StrategyGraph graph = Chain(kNodes, 16, 3);
  LiveSet live{.name = "all", .nodes = {}, .budget = kNodes * static_cast<double>(state.range(0))};
  for (int32_t i = 0; i < kNodes; ++i) live.nodes.push_back(i);
  graph.live_sets.push_back(live);
  Solve(state, graph);
}
BENCHMARK(BM_ChainWithinMemory)->ArgName("each")->Arg(16)->Unit(benchmark::kMillisecond);

// A window of 64 nodes at each node, as where activations live on for a while.
void BM_ChainWithinWindows(benchmark::State& state) {
  StrategyGraph graph = Chain(kNodes, 16, 3);
  for (int32_t i = 0; i + 64 <= kNodes; ++i) {
    LiveSet live{.name = "window", .nodes = {}, .budget = 64 * static_cast<double>(state.range(0))};
    for (int32_t k = 0; k < 64; ++k) live.nodes.push_back(i + k);
    graph.live_sets.push_back(live);
  }
  Solve(state, graph);
}
BENCHMARK(BM_ChainWithinWindows)->ArgName("each")->Arg(20)->Unit(benchmark::kMillisecond);

// A square of nodes, each with edges to four: as wide as it is long, and so beyond elimination.
void BM_Square(benchmark::State& state) {
  std::mt19937 random(1);
  StrategyGraph graph;
  const auto side = static_cast<int32_t>(state.range(0));
  for (int32_t i = 0; i < side * side; ++i) {
    AddRandomNode(graph, 8, random);
    if (i % side > 0) AddRandomEdge(graph, i - 1, i, 0, random);
    if (i >= side) AddRandomEdge(graph, i - side, i, 0, random);
  }
  Solve(state, graph);
}
BENCHMARK(BM_Square)->ArgName("side")->Arg(7)->Unit(benchmark::kMillisecond);

// A chain of which all nodes read the first one, as all layers do a mask or a table.
void BM_Readers(benchmark::State& state) {
  const auto readers = static_cast<int32_t>(state.range(0));
  std::mt19937 random(1);
  StrategyGraph graph;
  for (int32_t i = 0; i <= readers; ++i) {
    AddRandomNode(graph, 3, random);
    if (i > 0) AddRandomEdge(graph, 0, i, 0, random);
    if (i > 1) AddRandomEdge(graph, i - 1, i, 0, random);
  }
  Solve(state, graph);
}
BENCHMARK(BM_Readers)->ArgName("readers")->Arg(500)->Arg(4000)->Unit(benchmark::kMillisecond);

// Layers of 40 nodes with 4 to 30 strategies; the first node of each is read by the next layer.
StrategyGraph Layers(int32_t count) {
  StrategyGraph graph;
  for (int32_t layer = 0; layer < count; ++layer) {
    std::mt19937 random(7);
    const int32_t first = layer * 40;
    for (int32_t i = 0; i < 40; ++i) {
      AddRandomNode(graph, Draw(random, 4, 30), random);
      if (i > 0) AddRandomEdge(graph, first + i - 1, first + i, 0, random);
      if (i > 3 && i % 5 == 0) AddRandomEdge(graph, first + i - 4, first + i, 0, random);
    }
    AddRandomEdge(graph, first, first + 39, 0, random);
    if (layer == 0) continue;
    std::mt19937 between(8);
    AddRandomEdge(graph, first - 1, first, 0, between);
    AddRandomEdge(graph, first - 40, first, 0, between);
  }
  return graph;
}

void BM_EqualLayers(benchmark::State& state) {
  SolveOptions options;
  if (state.range(0) != 0) {
    auto& blocks = options.repeats.emplace_back().blocks;
    for (int32_t i = 0; i < kLayers * 40; ++i) {
      if (i % 40 == 0) blocks.emplace_back();
      blocks.back().push_back(i);
    }
  }
  Solve(state, Layers(kLayers), options);
}
BENCHMARK(BM_EqualLayers)->ArgName("repeats")->Arg(0)->Arg(1)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace orrery::transforms::strategies
