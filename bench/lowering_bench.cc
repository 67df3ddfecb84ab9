// What lowering llama3-70b on 8 nodes takes that is made once a step, and what each play of it
// adds: a search that skips plays the first 12 or 13 of 64 microbatches, each by itself.

#include <benchmark/benchmark.h>

#include <cstdlib>

#include "cluster/cluster.h"
#include "cost_models/cost_model.h"
#include "importer/load_model.h"
#include "lowering/network/exchange_store.h"
#include "lowering/prepared_step.h"
#include "search/settings/setting.h"
#include "transforms/parallel.h"
#include "transforms/training/training_step.h"

namespace orrery {
namespace {

constexpr int64_t kMicrobatches = 64, kFew = 12;

// A step with all that it is lowered onto.
struct Lowered {
  Lowered() {
    setting.step = importer::LoadModel({.model = "llama3-70b", .batch_size = 512}).value();
    if (!transforms::MakeTrainingStep(setting.step, {.optimizer = "adam"}).ok()) std::abort();
    setting.cluster = cluster::ParseCluster("dgx-h100:8").value();
    setting.cost_model = cost_models::MakeCostModel("kernels").value();
    plan = {.dp = 2,
            .hp = 8,
            .pp = 4,
            .microbatches = kMicrobatches,
            .zero = 1,
            .sharding = transforms::ShardingMethod::kMegatron,
            .stages_by = transforms::StagesBy::kFlops};
    step = transforms::ParallelTransform3d(setting.step, plan, {}).value();
  }

  lowering::LoweringInput Input(lowering::ExchangeStore* exchanges) const {
    lowering::LoweringOptions options = search::LoweringOf(setting, plan);
    options.names = false;
    options.fuse_runs = options.fuse_stretches = true;
    return {.step = step,
            .schedule = *plan.schedule,
            .cluster = setting.cluster,
            .cost_model = *setting.cost_model,
            .options = options,
            .exchanges = exchanges};
  }

  search::Setting setting;
  transforms::ParallelPlan plan;
  transforms::PipelinedStep step;
};

void BM_PrepareStep(benchmark::State& state) {
  const Lowered lowered;
  lowering::ExchangeStore exchanges(lowered.setting.cluster.topology);
  int64_t ops = 0;
  for (const transforms::PipelineStage& stage : lowered.step.stages) {
    for (const auto* part : stage.parts()) ops += std::ssize(part->function.order());
  }
  for (auto _ : state) {
    lowering::PreparedStep prepared(lowered.Input(&exchanges));
    if (!prepared.Prepare().ok()) std::abort();
    benchmark::DoNotOptimize(prepared.Serves(1));
  }
  state.SetItemsProcessed(state.iterations() * ops);
}
BENCHMARK(BM_PrepareStep)->Unit(benchmark::kMicrosecond);

void BM_InstantiateStep(benchmark::State& state) {
  const Lowered lowered;
  lowering::ExchangeStore exchanges(lowered.setting.cluster.topology);
  lowering::PreparedStep prepared(lowered.Input(&exchanges));
  if (!prepared.Prepare().ok()) std::abort();
  int64_t tasks = 0;
  for (auto _ : state) {
    const auto program = prepared.Instantiate({.first_microbatches = state.range(0)});
    tasks = program->task_count();
    benchmark::DoNotOptimize(tasks);
  }
  state.SetItemsProcessed(state.iterations() * tasks);
}
BENCHMARK(BM_InstantiateStep)
    ->ArgName("microbatches")
    ->Arg(kFew)
    ->Arg(kMicrobatches)
    ->Unit(benchmark::kMicrosecond);

}  // namespace
}  // namespace orrery
