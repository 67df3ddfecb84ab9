#include <benchmark/benchmark.h>

#include <string>

#include "simulator/jitter/distribution.h"
#include "simulator/parameter_server/play_training.h"
#include "simulator/parameter_server/training.h"

// Runs by way of parameter servers: workers and servers around a switch, layers that are alike.

namespace orrery {
namespace {

namespace ps = simulator::parameter_server;

ps::Training Star(int32_t workers, int32_t servers) {
  constexpr Bandwidth kCard(3'125'000'000);
  constexpr int32_t kLayers = 24;
  ps::Training training;
  training.workers = workers;
  training.servers = servers;
  training.rates.assign(static_cast<size_t>(servers), Bandwidth(50'000'000'000));
  const auto card = [&] {
    return training.network.AddResource({.name = "card", .kind = "nic", .capacity = kCard});
  };
  std::vector<simulator::ResourceId> out, in;
  for (int32_t i = 0; i < workers + servers; ++i) {
    out.push_back(card());
    in.push_back(card());
  }
  for (size_t w = 0; w < static_cast<size_t>(workers); ++w) {
    for (size_t s = static_cast<size_t>(workers); s < out.size(); ++s) {
      training.push.push_back({.loads = {{out[w], 1}, {in[s], 1}}});
      training.pull.push_back({.loads = {{out[s], 1}, {in[w], 1}}});
    }
  }
  for (int32_t l = 0; l < kLayers; ++l) {
    training.keys.push_back({.gradient = Bytes(48 << 20), .parameter = Bytes(48 << 20)});
    training.segments.push_back({.time = Duration(7'000'000'000), .needs = {l}});
  }
  for (int32_t l = kLayers - 1; l >= 0; --l) {
    training.segments.push_back({.time = Duration(14'000'000'000), .completes = {l}});
  }
  training.parts = ps::SpreadKeys(training.keys, servers, Bytes(4 << 20));
  training.steps = 5;
  return training;
}

// Workers in step: rates are found once for all that happens at a moment. And workers that are not.
void BM_Run(benchmark::State& state) {
  ps::Training training =
      Star(static_cast<int32_t>(state.range(0)), static_cast<int32_t>(state.range(1)));
  if (state.range(2) > 0) {
    training.policy.sync = ps::Sync::kAsync;
    training.disturbances.rank =
        simulator::Spread{simulator::FindJitterDistribution("normal"), 0.1};
  }
  int64_t events = 0;
  for (auto _ : state) events += ps::Play(training)->events;
  state.counters["events"] =
      benchmark::Counter(static_cast<double>(events), benchmark::Counter::kIsRate);
}
BENCHMARK(BM_Run)
    ->ArgNames({"workers", "servers", "asp"})
    ->Args({8, 2, 0})
    ->Args({32, 8, 0})
    ->Args({128, 32, 0})
    ->Args({8, 2, 1})
    ->Args({32, 8, 1})
    ->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace orrery
