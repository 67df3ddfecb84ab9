// DualPipe on 16 ranks, 128 microbatches, 61 layers (the size of DeepSeek-V3): from the training
// step to the report. The target is below 20 ms.

#include <benchmark/benchmark.h>

#include "cluster/cluster.h"
#include "importer/builtin_models.h"
#include "search/evaluate.h"
#include "search/settings/model_flops.h"
#include "support/check.h"
#include "transforms/training/training_step.h"

namespace orrery {
namespace {

constexpr int64_t kRanks = 16, kMicrobatches = 128;

search::Setting DeepGpt() {
  constexpr absl::string_view kModel =
      "gpt:layers=61,hidden=7168,heads=56,seq=4096,vocab=129280,tied_embeddings=0";
  search::Setting setting;
  setting.step = importer::BuildBuiltinModel(kModel, kMicrobatches, ir::DType::kBF16).value();
  ORRERY_CHECK(transforms::MakeTrainingStep(setting.step, {.optimizer = "adam"}).ok());
  setting.cluster = cluster::ParseCluster("dgx-h100:2").value();
  setting.cost_model = cost_models::MakeCostModel("roofline").value();
  setting.batch_size = kMicrobatches;
  setting.model_flops = search::CountModelFlops(setting.step);
  return setting;
}

void Schedule(benchmark::State& state, const char* schedule) {
  const search::Setting setting = DeepGpt();
  const transforms::ParallelPlan plan = {.pp = kRanks,
                                         .microbatches = kMicrobatches,
                                         .schedule = schedule,
                                         .stages_by = transforms::StagesBy::kFlops};
  int64_t tasks = 0;
  for (auto _ : state) {
    const auto run = search::Play(setting, plan);
    ORRERY_CHECK(run.ok()) << run.status();
    tasks = run->report.simulated_tasks;
  }
  state.counters["tasks"] = static_cast<double>(tasks);
}

BENCHMARK_CAPTURE(Schedule, dualpipe, "dualpipe")->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(Schedule, one_f_one_b, "1f1b")->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(Schedule, zb_h1, "zb-h1")->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace orrery
