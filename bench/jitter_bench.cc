// What one more played step costs, by what disturbs it, and what a draw does. A program is lowered
// once; a step of it sets the times of its kernels and plays it by the longest path.

#include <benchmark/benchmark.h>

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "simulator/engine/longest_path.h"
#include "simulator/jitter/distribution.h"
#include "simulator/jitter/draws.h"
#include "simulator/jitter/step_series.h"
#include "simulator/program/program.h"

namespace orrery::simulator {
namespace {

constexpr int32_t kRanks = 64;
constexpr int32_t kRounds = 128;

// Ranks that compute eight times and then all-reduce in groups of eight.
Program Replicas() {
  Program program;
  std::vector<StreamId> compute;
  for (int32_t r = 0; r < kRanks; ++r) {
    const RankClassId rank = program.AddRank({.members = {r}});
    compute.push_back(program.AddStream(rank, StreamKind::kCompute));
  }
  const LabelId kernel = program.AddLabel({.name = "MatMul"});
  const LabelId reduce = program.AddLabel({.name = "AllReduce", .kind = TaskKind::kCollective});
  for (int32_t round = 0; round < kRounds; ++round) {
    for (const StreamId stream : compute) {
      for (int k = 0; k < 8; ++k) {
        program.AddTask(stream, {.duration = Duration(1'000'000), .label = kernel});
      }
    }
    for (size_t r = 0; r < compute.size(); r += 8) {
      program.AddRendezvous(std::span(compute).subspan(r, 8),
                            {.duration = Duration(300'000), .label = reduce});
    }
  }
  return program;
}

Disturbances DisturbancesOf(int64_t kind) {
  Disturbances of;
  const Spread normal{FindJitterDistribution("normal"), 0.02};
  if (kind == 1) of.rank = normal;
  if (kind == 2) of.kernel = normal;
  if (kind == 3) of.kernel = Spread{FindJitterDistribution("lognormal"), 0.02};
  return of;
}

// 0: nothing drawn, 1: ranks, 2: each kernel, normal, 3: lognormal. Tasks a second.
void BM_PlayedStep(benchmark::State& state) {
  const Program program = Replicas();
  const Trace undisturbed = RunLongestPath(program);
  const DisturbedProgram disturbed(program, undisturbed, DisturbancesOf(state.range(0)));
  constexpr int32_t kSteps = 8;
  const bool waits = state.range(1) != 0;
  for (auto _ : state) {
    benchmark::DoNotOptimize(PlaySeries(disturbed, {.steps = kSteps, .waits = waits}));
  }
  state.SetItemsProcessed(state.iterations() * kSteps * program.task_count());
}
BENCHMARK(BM_PlayedStep)
    ->ArgNames({"drawn", "waits"})
    ->ArgsProduct({{0, 1, 2, 3}, {0, 1}})
    ->Unit(benchmark::kMillisecond);

void BM_Draw(benchmark::State& state) {
  const Spread spread{&AllJitterDistributions()[static_cast<size_t>(state.range(0))], 0.02};
  const Draws draws(1, DrawFor::kKernel, 0, 0);
  int64_t index = 0;
  for (auto _ : state) benchmark::DoNotOptimize(spread.Factor(draws.Uniform(index++)));
  state.SetLabel(std::string(spread.of->name));
  state.SetItemsProcessed(state.iterations());
}
BENCHMARK(BM_Draw)->DenseRange(0, 3);

}  // namespace
}  // namespace orrery::simulator
