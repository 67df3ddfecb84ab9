// Milliseconds to shard a training step by cost: GPT-3 175B over 8 GPUs of a DGX H100. The target
// is below a second. Counters: the seconds that a rank is busy, by the prices of the search, as it
// was found and as Megatron has it, without and with its sequence parallelism.

#include <benchmark/benchmark.h>

#include <string>

#include "absl/strings/str_cat.h"
#include "cluster/cluster.h"
#include "importer/builtin_models.h"
#include "lowering/network/sharding_prices.h"
#include "support/check.h"
#include "transforms/sharding/auto_shard.h"
#include "transforms/sharding/shard.h"
#include "transforms/sharding/sharding_memo.h"
#include "transforms/training/microbatch.h"
#include "transforms/training/training_step.h"

namespace orrery {
namespace {

// As Megatron places everything by hand.
std::vector<transforms::ShardingPin> Megatron() {
  return {{"^h[.][0-9]+[.](attn[.][qkv]|mlp[.]up)[.]weight$", 1},
          {"^h[.][0-9]+[.](attn[.]proj|mlp[.]down)[.]weight$", 0},
          {"^h[.][0-9]+[.](ln_1|ln_2|attn.residual|mlp.residual)$", 1}};
}

void Spread(benchmark::State& state, const char* model, int64_t batch, int64_t hp) {
  ir::Function step = importer::BuildBuiltinModel(model, batch, ir::DType::kBF16).value();
  ORRERY_CHECK(transforms::MakeTrainingStep(step, {}).ok()) << model;
  const cluster::Cluster cluster = cluster::ParseCluster("dgx-h100:1").value();
  const auto cost_model = cost_models::MakeCostModel("roofline").value();
  const ir::Mesh mesh({{"dp", 1}, {"hp", hp}});
  const std::vector<bool> batched = transforms::BatchedInputs(step);
  transforms::AutoShardReport report;
  const lowering::ClusterShardingPrices all(mesh, cluster, *cost_model);
  double found = 0;
  for (auto _ : state) {
    const lowering::ClusterShardingPrices prices(mesh, cluster, *cost_model);
    const auto sharded = transforms::AutoShard(step, mesh, batched, prices, {}, &report);
    ORRERY_CHECK(sharded.ok()) << sharded.status();
    found = transforms::SerialSeconds(*sharded, all);
  }
  const auto pinned = transforms::AutoShard(step, mesh, batched, all, {.pins = Megatron()});
  const auto pattern = transforms::Shard(step, mesh, batched);
  state.counters["nodes"] = static_cast<double>(report.nodes);
  state.counters["edges"] = static_cast<double>(report.edges);
  state.counters["labels"] = static_cast<double>(report.labels);
  state.counters["composed"] = static_cast<double>(report.composed);
  state.counters["optimal"] = report.optimal ? 1 : 0;
  state.counters["build_ms"] = report.build_time * 1e3;
  state.counters["solve_ms"] = report.solve_time * 1e3;
  state.counters["chosen_s"] = report.seconds;
  state.counters["found_s"] = found;
  if (pinned.ok()) state.counters["sequence_s"] = transforms::SerialSeconds(*pinned, all);
  if (pattern.ok()) state.counters["megatron_s"] = transforms::SerialSeconds(*pattern, all);
}

BENCHMARK_CAPTURE(Spread, gpt3, "gpt3-175b", 1, 8)->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(Spread, gpt3_batch, "gpt3-175b", 8, 8)->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(Spread, llama3, "llama3-70b", 1, 8)->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(Spread, resnet, "resnet-50", 64, 8)->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(Spread, bert, "bert-large", 8, 4)->Unit(benchmark::kMillisecond);

// Questions about one step that differ in the price of memory, after the first: `layers` of GPT-3.
void NextPrice(benchmark::State& state) {
  const std::string model = absl::StrCat("gpt:layers=", state.range(0),
                                         ",hidden=12288,heads=96,seq=2048,vocab=51200,flash=1");
  ir::Function step = importer::BuildBuiltinModel(model, 1, ir::DType::kBF16).value();
  ORRERY_CHECK(transforms::MakeTrainingStep(step, {}).ok()) << model;
  const cluster::Cluster cluster = cluster::ParseCluster("dgx-h100:1").value();
  const auto cost_model = cost_models::MakeCostModel("roofline").value();
  const ir::Mesh mesh({{"dp", 1}, {"hp", 8}});
  const lowering::ClusterShardingPrices prices(mesh, cluster, *cost_model);
  const std::vector<bool> batched = transforms::BatchedInputs(step);
  transforms::ShardingMemo memo;
  double price = 1e-15;  // seconds a byte
  for (auto _ : state) {
    price *= 1.01;
    const auto sharded = transforms::AutoShard(step, mesh, batched, prices,
                                               {.memory_price = price, .frames = &memo.frames()});
    ORRERY_CHECK(sharded.ok()) << sharded.status();
  }
}
BENCHMARK(NextPrice)->ArgName("layers")->Arg(24)->Arg(96)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace orrery
