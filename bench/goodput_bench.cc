#include <benchmark/benchmark.h>

#include "simulator/goodput/best_interval.h"
#include "simulator/goodput/trials.h"

// Runs of 54 days on 16,384 devices, as of Llama 3 405B.

namespace orrery {
namespace {

using simulator::goodput::AllComponents;
using simulator::goodput::RunSpec;

RunSpec Llama3(int64_t hours) {
  return {
      .job = {.hosts = 2'048, .hosts_per_rack = 8, .replicas = 128},
      .length_s = 54 * 86'400.0,
      .step_s = 7,
      .failures = {{&AllComponents()[0], 16'384 * 3600.0 * static_cast<double>(hours)}},
      .tiers = {{.name = "pfs", .every_steps = 51, .stall_s = 6, .write_s = 3, .load_s = 3}},
      .recovery = {.detect = {300, 300}, .restart = {300, 300}, .repair_s = 86'400, .spares = 20}};
}

// By the hours between two failures: time grows with failures, not with steps.
void BM_Run(benchmark::State& state) {
  const RunSpec spec = Llama3(state.range(0));
  uint64_t trial = 0;
  for (auto _ : state) benchmark::DoNotOptimize(PlayTrial(spec, 1, trial++));
}
BENCHMARK(BM_Run)->ArgName("hours")->Arg(3)->Arg(30)->Arg(300)->Unit(benchmark::kMicrosecond);

void BM_BestInterval(benchmark::State& state) {
  const RunSpec spec = Llama3(3);
  for (auto _ : state) benchmark::DoNotOptimize(FindBestInterval(spec, 0, {}));
}
BENCHMARK(BM_BestInterval)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace orrery
