#include <benchmark/benchmark.h>

#include <cstdlib>

#include "cost_models/summary.h"
#include "importer/builtin_models.h"
#include "ir/verifier.h"
#include "transforms/training/training_step.h"

// A model of the library from its name to a training step: GPT-3 with 96 layers of 12288. The
// target is 100 ms for all of it; issue 3 of the repository says so.

namespace orrery {
namespace {

constexpr char kGpt3[] = "gpt3-175b";

ir::Function Forward(const char* model) {
  return importer::BuildBuiltinModel(model, 8, ir::DType::kBF16).value();
}

ir::Function Step(const char* model, bool simplify) {
  ir::Function step = Forward(model);
  if (!transforms::MakeTrainingStep(step, {.simplify = simplify}).ok()) std::abort();
  return step;
}

void CountOps(benchmark::State& state, const ir::Function& function) {
  state.counters["ops"] = static_cast<double>(function.order().size());
  state.SetItemsProcessed(state.iterations() * static_cast<int64_t>(function.order().size()));
}

void BM_Gpt3Forward(benchmark::State& state) {
  for (auto _ : state) benchmark::DoNotOptimize(Forward(kGpt3));
  CountOps(state, Forward(kGpt3));
}

void BM_Gpt3Step(benchmark::State& state) {
  const bool simplify = state.range(0) != 0;
  for (auto _ : state) benchmark::DoNotOptimize(Step(kGpt3, simplify));
  CountOps(state, Step(kGpt3, simplify));
}

void BM_Gpt3Verify(benchmark::State& state) {
  const ir::Function step = Step(kGpt3, false);
  for (auto _ : state) benchmark::DoNotOptimize(ir::Verify(step).ok());
  CountOps(state, step);
}

void BM_Gpt3Summary(benchmark::State& state) {
  const ir::Function step = Step(kGpt3, false);
  for (auto _ : state) benchmark::DoNotOptimize(cost_models::Summarize(step));
  CountOps(state, step);
}

BENCHMARK(BM_Gpt3Forward)->Unit(benchmark::kMillisecond);
BENCHMARK(BM_Gpt3Step)->ArgName("simplify")->Arg(0)->Arg(1)->Unit(benchmark::kMillisecond);
BENCHMARK(BM_Gpt3Verify)->Unit(benchmark::kMillisecond);
BENCHMARK(BM_Gpt3Summary)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace orrery
