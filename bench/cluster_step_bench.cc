// A hybrid step of GPT-3 on 16,384 devices, from the training step to the report: parallelized,
// lowered onto the links of a cluster, played with what shares them, and summed up.

#include <benchmark/benchmark.h>

#include <cstdlib>
#include <utility>

#include "absl/strings/str_cat.h"
#include "cluster/cluster.h"
#include "cost_models/cost_model.h"
#include "importer/load_model.h"
#include "search/evaluate.h"
#include "transforms/training/training_step.h"

namespace orrery {
namespace {

search::Setting MakeSetting(absl::string_view cluster, int64_t batch_size = 4096) {
  search::Setting setting;
  setting.step =
      importer::LoadModel(
          {.model = "gpt:layers=96,hidden=12288,heads=96,seq=2048,vocab=51200,tied_embeddings=0",
           .batch_size = batch_size})
          .value();
  if (!transforms::MakeTrainingStep(setting.step, {.optimizer = "adam"}).ok()) std::abort();
  setting.cluster = cluster::ParseCluster(cluster).value();
  setting.cost_model = cost_models::MakeCostModel("roofline").value();
  return setting;
}

void BM_HybridStep(benchmark::State& state, absl::string_view cluster) {
  const search::Setting setting = MakeSetting(cluster);
  const transforms::ParallelPlan plan{.dp = 128,
                                      .hp = 8,
                                      .pp = 16,
                                      .microbatches = 32,
                                      .schedule = "1f1b",
                                      .stages_by = transforms::StagesBy::kFlops};
  int64_t tasks = 0;
  for (auto _ : state) {
    const search::Run run = search::Play(setting, plan).value();
    tasks = run.report.simulated_tasks;
    benchmark::DoNotOptimize(run.report.step_time);
  }
  state.counters["tasks"] = static_cast<double>(tasks);
}
BENCHMARK_CAPTURE(BM_HybridStep, FatTree, "fat-tree:16384@50GB/s,radix=64,device=h100-80gb")
    ->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(BM_HybridStep, DgxH100, "dgx-h100:2048")->Unit(benchmark::kMillisecond);
// The NICs of a node hang on rails, and a spine of half their rate joins those.
BENCHMARK_CAPTURE(BM_HybridStep, Oversubscribed, "dgx-h100:2048,oversubscription=2")
    ->Unit(benchmark::kMillisecond);

// Groups of data parallelism grow with the cluster, and so does the batch: 8 microbatches a
// replica.
void WidePlan(benchmark::State& state, absl::string_view cluster) {
  const auto nodes = static_cast<int32_t>(state.range(0));
  const search::Setting setting = MakeSetting(cluster, nodes * 8);
  const transforms::ParallelPlan plan{.dp = nodes / 8,
                                      .hp = 8,
                                      .pp = 8,
                                      .microbatches = 8,
                                      .schedule = "1f1b",
                                      .stages_by = transforms::StagesBy::kFlops};
  for (auto _ : state) {
    benchmark::DoNotOptimize(search::Play(setting, plan).value().report.step_time);
  }
}

void BM_WidePlan(benchmark::State& state) {
  WidePlan(state, absl::StrCat("dgx-h100:", state.range(0)));
}
BENCHMARK(BM_WidePlan)
    ->ArgName("nodes")
    ->Arg(256)
    ->Arg(2048)
    ->Arg(16384)
    ->Unit(benchmark::kMillisecond);

// Routes are long, and groups share links.
void BM_WidePlanOnTorus(benchmark::State& state) {
  WidePlan(state, absl::StrCat("torus:32x32x", state.range(0) / 128, "@50GB/s,device=h100-80gb"));
}
BENCHMARK(BM_WidePlanOnTorus)
    ->ArgName("nodes")
    ->Arg(256)
    ->Arg(2048)
    ->Arg(16384)
    ->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace orrery
