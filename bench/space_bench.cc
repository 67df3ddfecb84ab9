#include <benchmark/benchmark.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <optional>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "cluster/cluster.h"
#include "cost_models/cost_model.h"
#include "importer/builtin_models.h"
#include "search/bounds/bounds.h"
#include "search/evaluate.h"
#include "search/search.h"
#include "search/settings/model_flops.h"
#include "search/spaces/space.h"
#include "transforms/training/training_step.h"

// What a search does with a candidate: lists it, bounds it, plays it; and how the last grows with
// layers, replicas and microbatches (docs/performance.md).

namespace orrery {
namespace {

search::Setting GptSetting(int64_t layers, const std::string& cluster) {
  search::Setting setting;
  const std::string model =
      absl::StrCat("gpt:layers=", layers, ",hidden=4096,heads=32,seq=2048,vocab=32000,flash=1");
  setting.step = importer::BuildBuiltinModel(model, 512, ir::DType::kBF16).value();
  if (!transforms::MakeTrainingStep(setting.step, {.optimizer = "adam"}).ok()) std::abort();
  setting.batch_size = 512;
  setting.cluster = cluster::ParseCluster(cluster).value();
  setting.cost_model = cost_models::MakeCostModel("kernels").value();
  setting.model_flops = search::CountModelFlops(setting.step);
  return setting;
}

search::Space FullSpace() {
  search::Space space;
  space.TakeAll();
  return space;
}

constexpr search::SpaceSize kSize = {
    .devices = 16, .batch_size = 64, .sequence = 2048, .devices_a_node = 8};

void BM_Enumerate(benchmark::State& state) {
  const search::Space space = FullSpace();
  size_t plans = 0;
  for (auto _ : state) {
    plans = search::Enumerate(space, kSize).value().size();
  }
  state.counters["plans"] = static_cast<double>(plans);
  state.SetItemsProcessed(state.iterations() * static_cast<int64_t>(plans));
}
BENCHMARK(BM_Enumerate)->Unit(benchmark::kMillisecond);

void BM_Bounds(benchmark::State& state) {
  const search::Setting setting = GptSetting(32, "dgx-a100:2");
  const search::PlanList plans = search::Enumerate(FullSpace(), kSize).value();
  search::Bounds bounds(setting);
  for (const search::ParallelPlan& plan : plans) benchmark::DoNotOptimize(bounds.Of(plan));
  size_t i = 0;
  const search::ParallelPlan some[] = {plans[plans.size() / 3], plans[plans.size() / 2],
                                       plans.back()};
  for (auto _ : state) {
    benchmark::DoNotOptimize(bounds.Of(some[i++ % 3]));
  }
}
BENCHMARK(BM_Bounds);

// Rows of candidates that are not played, as a table has them: too large by their bounds, or left.
void BM_CsvRows(benchmark::State& state) {
  search::Setting setting = GptSetting(32, "dgx-a100:2");
  setting.lowering.memory_limit = Bytes(int64_t{10} << 30);
  const search::SettingOf setting_of = [&](const search::ParallelPlan&) -> const search::Setting& {
    return setting;
  };
  search::SpaceSize size = kSize;
  size.batch_size = setting.batch_size;
  const search::PlanList plans = search::Enumerate(FullSpace(), size).value();
  const search::PlansView view(plans);
  search::SearchOptions options;
  options.top = 10;  // so that bounds are asked for
  options.next = []() -> std::optional<size_t> { return std::nullopt; };
  options.budget.candidates = 1;
  const search::SearchRows rows = search::SearchThrough(setting_of, view, options).value();
  int64_t too_large = 0;
  for (size_t i = 0; i < rows.size(); ++i) too_large += rows.IsLeft(i) ? 0 : 1;
  size_t bytes = 0;
  for (auto _ : state) {
    bytes = 0;
    const absl::Status written =
        search::WriteResultsCsv(setting, rows, {}, [&](absl::string_view piece) {
          bytes += piece.size();
          return absl::OkStatus();
        });
    if (!written.ok()) std::abort();
  }
  state.counters["rows"] = static_cast<double>(rows.size());
  state.counters["too_large"] = static_cast<double>(too_large);
  state.SetItemsProcessed(state.iterations() * static_cast<int64_t>(rows.size()));
  state.SetBytesProcessed(state.iterations() * static_cast<int64_t>(bytes));
}
BENCHMARK(BM_CsvRows)->Unit(benchmark::kMillisecond);

// Each size four times another: the first is what the others are compared with.
void BM_Candidate(benchmark::State& state) {
  const int64_t layers = state.range(0), dp = state.range(1), microbatches = state.range(2);
  const search::Setting setting =
      GptSetting(layers, absl::StrCat("dgx-a100:", 2 * std::max<int64_t>(1, dp / 2)));
  search::ParallelPlan plan;
  plan.dp = dp;
  plan.hp = 2;
  plan.pp = 4;
  plan.microbatches = microbatches;
  for (auto _ : state) {
    benchmark::DoNotOptimize(search::Evaluate(setting, plan)->step_time);
  }
}
BENCHMARK(BM_Candidate)
    ->ArgNames({"layers", "dp", "microbatches"})
    ->Args({16, 2, 64})
    ->Args({64, 2, 64})
    ->Args({16, 8, 64})
    ->Args({16, 2, 256})
    ->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace orrery
