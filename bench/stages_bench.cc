// Milliseconds to cut a training step into stages: GPT-3 175B, 96 layers, on 16 ranks with two
// stages each, by cost. The target is below 10 ms. `flops` is the cut without prices; `planner`
// the dynamic program and its improvement alone.

#include <benchmark/benchmark.h>

#include "cluster/cluster.h"
#include "importer/builtin_models.h"
#include "lowering/network/sharding_prices.h"
#include "support/check.h"
#include "transforms/stages/stage_plan.h"
#include "transforms/strategies/stage_program.h"
#include "transforms/training/training_step.h"

namespace orrery {
namespace {

constexpr int32_t kRanks = 16, kChunks = 2, kMicrobatches = 64;

void CutGpt3(benchmark::State& state, transforms::StagesBy by) {
  ir::Function step = importer::BuildBuiltinModel("gpt3-175b", 1, ir::DType::kBF16).value();
  ORRERY_CHECK(transforms::MakeTrainingStep(step, {}).ok());
  const cluster::Cluster cluster = cluster::ParseCluster("dgx-a100:2").value();
  const auto cost_model = cost_models::MakeCostModel("roofline").value();
  const lowering::ClusterShardingPrices prices(ir::Mesh({{"pp", kRanks}}), cluster, *cost_model);
  const auto* schedule = transforms::FindSchedule("interleaved").value();
  transforms::ScheduledRanks ranks;
  ranks.shape = schedule->ShapeOf(kRanks, kMicrobatches, kChunks);
  ranks.orders = schedule->OrdersOf(ranks.shape);
  transforms::StageOptions options{.stages = ranks.shape.stages(), .microbatches = kMicrobatches};
  for (int32_t s = 0; s < ranks.shape.stages(); ++s) options.ranks.push_back(s % kRanks);
  options.choice.by = by;
  options.choice.prices = &prices;
  options.choice.schedule = &ranks;
  for (auto _ : state) {
    const auto plan = transforms::PlanStages(step, options);
    ORRERY_CHECK(plan.ok()) << plan.status();
    benchmark::DoNotOptimize(plan->stage.size());
  }
  state.counters["ops"] = static_cast<double>(step.order().size());
}

BENCHMARK_CAPTURE(CutGpt3, flops, transforms::StagesBy::kFlops)->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(CutGpt3, layers, transforms::StagesBy::kLayers)->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(CutGpt3, cost, transforms::StagesBy::kCost)->Unit(benchmark::kMillisecond);

void Planner(benchmark::State& state, int32_t units, int32_t chunks) {
  const std::vector<double> ones(static_cast<size_t>(units), 1);
  transforms::strategies::StageProblem problem{.seconds = ones,
                                               .boundary_seconds = ones,
                                               .boundary_bytes = ones,
                                               .state_bytes = ones,
                                               .kept_bytes = ones,
                                               .stages = kRanks * chunks};
  problem.seconds.back() = 2.5;
  for (int32_t s = 0; s < problem.stages; ++s) problem.ranks.push_back(s % kRanks);
  for (auto _ : state) {
    benchmark::DoNotOptimize(transforms::strategies::DivideByCost(problem)->slowest_rank);
  }
}

BENCHMARK_CAPTURE(Planner, 97_units_16, 97, 1)->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(Planner, 97_units_16_by_2, 97, kChunks)->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(Planner, 400_units_16, 400, 1)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace orrery
