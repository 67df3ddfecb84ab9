#include <benchmark/benchmark.h>

#include <cstdint>
#include <utility>
#include <vector>

#include "cluster/cluster.h"
#include "cost_models/cost_model.h"
#include "ir/models/mlp.h"
#include "ir/verifier.h"
#include "lowering/lower.h"
#include "search/evaluate.h"
#include "search/search.h"
#include "search/settings/model_flops.h"
#include "search/spaces/space.h"
#include "simulator/engine/longest_path.h"
#include "simulator/report/report.h"
#include "transforms/parallel.h"
#include "transforms/schedules/schedule.h"
#include "transforms/training/training_step.h"

// From the model to the report: DistIR's grid as a whole, and each stage by itself on the MLP of
// its notebook. `times_distir` is DistIR's published time over ours; docs/validation.md says on
// what it was measured.

namespace orrery {
namespace {

constexpr double kDistirGridSeconds = 83.7;       // transform, infer, simulate: 52 configurations
constexpr double kDistirSimulateSeconds = 0.357;  // infer, cost, simulate: 4,096 layers, 16,386 ops

benchmark::Counter TimesDistir(double seconds) {
  return benchmark::Counter(seconds, benchmark::Counter::kIsIterationInvariantRate);
}

ir::Function MakeStep(const ir::MlpShape& shape, absl::string_view optimizer) {
  ir::Function step = ir::Mlp(shape).value();
  const absl::Status status =
      transforms::MakeTrainingStep(step, {.optimizer = std::string(optimizer)});
  if (!status.ok()) std::abort();
  return step;
}

// What `--preset distir` sets.
transforms::ParallelPlan DistirPlan() {
  return {.schedule = "distir",
          .sharding = transforms::ShardingMethod::kDistir,
          .stages_by = transforms::StagesBy::kFlops,
          .order = "pp,hp,dp",
          .blocking = true};
}

search::Setting MakeSetting(ir::Function step, absl::string_view cluster) {
  search::Setting setting;
  setting.step = std::move(step);
  setting.cluster = cluster::ParseCluster(cluster).value();
  setting.cost_model = cost_models::MakeCostModel("distir").value();
  return setting;
}

// The notebook's grid on one thread: 64 layers of 8192, batch 8192, 16 devices.
void BM_DistirGrid(benchmark::State& state) {
  search::Space space(DistirPlan());
  if (!space.List(*transforms::FindAxis("micro-batches"), "distir").ok()) std::abort();
  const auto plans = search::Enumerate(space, {.devices = 16, .batch_size = 8192}).value().All();
  int64_t tasks = 0;
  for (auto _ : state) {
    search::Setting setting = MakeSetting(MakeStep({}, "sgd"), "uniform:16@200Gbps");
    setting.batch_size = 8192;
    setting.model_flops = search::CountModelFlops(setting.step);
    const auto results = search::RunSearch(setting, plans).value();
    tasks = 0;
    for (const search::Result& result : results) tasks += result.simulated_tasks;
  }
  state.counters["candidates"] = static_cast<double>(plans.size());
  state.counters["tasks"] = static_cast<double>(tasks);
  state.counters["times_distir"] = TimesDistir(kDistirGridSeconds);
}
BENCHMARK(BM_DistirGrid)->Unit(benchmark::kMillisecond);

// A candidate of a search: time is stepped over, so that what grows with the microbatches is the
// orders of the schedule alone, and what times them for divisions into stages: about 2 us a
// microbatch of 8 stages.
void BM_ManyMicrobatches(benchmark::State& state) {
  search::Setting setting = MakeSetting(
      MakeStep({.layers = 64, .dim = 1024, .batch = 1 << 16}, "sgd"), "uniform:16@200Gbps");
  setting.batch_size = 1 << 16;
  setting.cost_model = cost_models::MakeCostModel("roofline").value();
  transforms::ParallelPlan plan;
  plan.hp = 2;
  plan.pp = 8;
  plan.microbatches = state.range(0);
  plan.schedule = "1f1b";
  for (auto _ : state) {
    benchmark::DoNotOptimize(search::Evaluate(setting, plan)->step_time);
  }
}
BENCHMARK(BM_ManyMicrobatches)
    ->ArgName("microbatches")
    ->RangeMultiplier(16)
    ->Range(64, 1 << 14)
    ->Unit(benchmark::kMillisecond);

ir::MlpShape Scaling(const benchmark::State& state) {
  return {.layers = state.range(0), .dim = 64, .batch = 64};
}

// The notebook's scaling study on one device, from nothing to the report.
void BM_SequentialMlp(benchmark::State& state) {
  for (auto _ : state) {
    const auto setting = MakeSetting(MakeStep(Scaling(state), "none"), "uniform:1@200Gbps");
    benchmark::DoNotOptimize(search::Play(setting, DistirPlan())->report.step_time);
  }
  state.SetItemsProcessed(state.iterations() * (4 * state.range(0) + 2));
}

// Everything that a stage needs is made before it is timed.
struct Stages {
  explicit Stages(const benchmark::State& state)
      : setting(MakeSetting(MakeStep(Scaling(state), "none"), "uniform:1@200Gbps")),
        pipelined(transforms::ParallelTransform3d(setting.step, {}).value()),
        program(Lower()),
        trace(simulator::RunLongestPath(program)) {}

  simulator::Program Lower() const {
    return lowering::Lower({.step = pipelined,
                            .schedule = *transforms::FindSchedule("distir").value(),
                            .cluster = setting.cluster,
                            .cost_model = *setting.cost_model,
                            .options = search::LoweringOf(setting, DistirPlan())})
        .value();
  }

  search::Setting setting;
  transforms::PipelinedStep pipelined;
  simulator::Program program;
  simulator::Trace trace;
};

// Times `work` on the stages of a model, counted in its ops.
template <typename Work>
void Time(benchmark::State& state, const Work& work) {
  Stages stages(state);
  for (auto _ : state) work(stages);
  state.SetItemsProcessed(state.iterations() *
                          static_cast<int64_t>(stages.setting.step.order().size()));
}

void BM_Build(benchmark::State& state) {
  Time(state, [&](Stages&) { benchmark::DoNotOptimize(ir::Mlp(Scaling(state)).value()); });
}

void BM_Verify(benchmark::State& state) {
  Time(state, [](Stages& s) { benchmark::DoNotOptimize(ir::Verify(s.setting.step).ok()); });
}

void BM_Spread(benchmark::State& state) {
  Time(state, [](Stages& s) {
    benchmark::DoNotOptimize(transforms::ParallelTransform3d(s.setting.step, {}).value());
  });
}

void BM_Lower(benchmark::State& state) {
  Time(state, [](Stages& s) { benchmark::DoNotOptimize(s.Lower()); });
}

void BM_RunLongestPath(benchmark::State& state) {
  Time(state, [](Stages& s) { simulator::RunLongestPath(s.program, s.trace); });
}

void BM_Summarize(benchmark::State& state) {
  Time(state, [](Stages& s) {
    benchmark::DoNotOptimize(simulator::Summarize(s.program, s.trace).step_time);
  });
}

// What DistIR's figure for this study covers: types and costs of the ops, and playing them.
void BM_LowerAndPlay(benchmark::State& state) {
  Time(state, [](Stages& s) {
    const simulator::Program program = s.Lower();
    simulator::RunLongestPath(program, s.trace);
    benchmark::DoNotOptimize(s.trace.makespan);
  });
  if (state.range(0) == 4096) state.counters["times_distir"] = TimesDistir(kDistirSimulateSeconds);
}

void Layers(benchmark::internal::Benchmark* bench) {
  bench->ArgName("layers")->Arg(32)->Arg(256)->Arg(1024)->Arg(4096)->Unit(benchmark::kMicrosecond);
}
BENCHMARK(BM_SequentialMlp)->Apply(Layers);
BENCHMARK(BM_Build)->Apply(Layers);
BENCHMARK(BM_Verify)->Apply(Layers);
BENCHMARK(BM_Spread)->Apply(Layers);
BENCHMARK(BM_Lower)->Apply(Layers);
BENCHMARK(BM_RunLongestPath)->Apply(Layers);
BENCHMARK(BM_Summarize)->Apply(Layers);
BENCHMARK(BM_LowerAndPlay)->Apply(Layers);

}  // namespace
}  // namespace orrery
