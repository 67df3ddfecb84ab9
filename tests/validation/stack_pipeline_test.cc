#include <gtest/gtest.h>

#include <vector>

#include "ir/op_kind.h"
#include "lowering/blocks/stack_kernels.h"
#include "tests/validation/stack_test_util.h"
#include "transforms/plan/plan_text.h"

// How software sends between stages, reduces gradients and prepares microbatches, in whole steps.

namespace orrery::tools {
namespace stack_pipeline_test_cc {
namespace {

using lowering::StackKernels;
using transforms::ParallelPlan;

constexpr auto kMegatron = transforms::ShardingMethod::kMegatron;
constexpr auto kOff = transforms::SequenceParallel::kOff;

// One rank stands for all.
search::Run ExpectFolds(const StackKernels& kernels, const ParallelPlan& plan) {
  search::Run run = PlayedWith(kernels, plan);
  EXPECT_EQ(run.report.step_time, PlayedWith(kernels, plan, /*fold=*/false).report.step_time)
      << ToString(plan);
  return run;
}

// Nothing is computed while a rank sends.
TEST(StackPipeline, WaitsForSends) {
  const StackKernels waits = {.waits_for_sends = true};
  for (const ParallelPlan& plan : {ParallelPlan{.pp = 4, .microbatches = 8},
                                   ParallelPlan{.dp = 2, .pp = 2, .microbatches = 4}}) {
    const search::Run plain = PlayedWith({}, plan), run = ExpectFolds(waits, plan);
    EXPECT_GT(run.report.step_time, plain.report.step_time) << ToString(plan);
    EXPECT_EQ(run.report.bytes_sent, plain.report.bytes_sent);
    EXPECT_EQ(run.report.flops, plain.report.flops);
  }
  const ParallelPlan alone = {.dp = 2, .hp = 2, .microbatches = 2};
  EXPECT_EQ(PlayedWith(waits, alone).report.step_time, PlayedWith({}, alone).report.step_time);
}

// Half of the bytes for two ranks, a quarter for four.
TEST(StackPipeline, ScattersSends) {
  constexpr char kUntied[] =
      "gpt:layers=4,hidden=64,heads=4,seq=32,vocab=256,dropout=0.1,tied_embeddings=0";
  const StackKernels scatters = {.scatters_sends = true};
  for (const int64_t hp : {2, 4}) {
    const ParallelPlan plan = {
        .hp = hp, .pp = 2, .microbatches = 4, .sharding = kMegatron, .sequence_parallel = kOff};
    const search::Run plain = PlayedWith({}, plan, /*fold=*/true, kUntied),
                      run = PlayedWith(scatters, plan, /*fold=*/true, kUntied),
                      all = PlayedWith(scatters, plan, /*fold=*/false, kUntied);
    EXPECT_EQ(run.report.bytes_sent.count() * hp, plain.report.bytes_sent.count());
    EXPECT_EQ(run.report.flops, plain.report.flops);
    EXPECT_EQ(run.report.step_time, all.report.step_time);
  }
}

// A rank keeps all of what its group has sent, not its part alone.
TEST(StackPipeline, KeepsAllThatWasSent) {
  const ParallelPlan plan = {
      .hp = 2, .pp = 2, .microbatches = 4, .sharding = kMegatron, .sequence_parallel = kOff};
  const auto kept = [&](bool scatters) {
    const auto peak = [&](double sent) {
      search::Setting setting = SmallSetting(plan);
      setting.lowering.kernels.scatters_sends = scatters;
      setting.lowering.stack_memory.sent = sent;
      search::PlanPlayer player(setting, plan);
      EXPECT_TRUE(player.Prepare().ok());
      return player.Play({}).value().report.peak_memory.count();
    };
    return peak(1000) - peak(0);
  };
  EXPECT_GT(kept(false), 0);
  EXPECT_EQ(kept(true), kept(false));
}

// Gathers and reduce-scatters along the sequence take as much longer as a kernel that reads and
// writes what they move; nothing else does.
TEST(StackPipeline, CopiesWhatIsGathered) {
  const StackKernels copies = {.copies_gathers = true};
  ParallelPlan plan = {.hp = 4,
                       .sharding = kMegatron,
                       .sequence_parallel = transforms::SequenceParallel::kOn,
                       .blocking = true};
  const search::Run plain = PlayedWith({}, plan), run = ExpectFolds(copies, plan);
  const search::Setting setting = SmallSetting(plan);
  const cluster::Device& device = setting.cluster.device;
  Duration copied;
  for (const transforms::PipelineStage& stage : plain.pipelined.stages) {
    for (const transforms::StageFunction* part : stage.parts()) {
      const ir::Function& function = part->function;
      for (const ir::OpId op : function.order()) {
        const bool gathers = function.kind(op) == ir::OpKind::kAllGather;
        if (!gathers && function.kind(op) != ir::OpKind::kReduceScatter) continue;
        const ir::ValueId moved = gathers ? function.result(op) : function.operands(op)[0];
        const Bytes bytes = ir::SizeOf(ir::LocalType(function.type(moved), function.mesh()));
        copied += setting.cost_model->Fused(Flops(0), bytes * 2, device).value();
      }
    }
  }
  EXPECT_GT(copied, Duration(0));
  EXPECT_EQ(run.report.step_time, plain.report.step_time + copied);
  const ParallelPlan data = {.dp = 4, .zero = 1};
  EXPECT_EQ(PlayedWith(copies, data).report.step_time, PlayedWith({}, data).report.step_time);
}

// A slow host launches the next kernels while ranks communicate: behind slow links its launches
// take nothing.
TEST(StackPipeline, LaunchesWhileRanksCommunicate) {
  const ParallelPlan plan = {
      .hp = 4, .sharding = kMegatron, .sequence_parallel = kOff, .blocking = true};
  const auto seconds = [&](const std::string& cluster, Duration launch) {
    search::Setting setting = SmallSetting(plan, "roofline", kDropoutGpt, cluster);
    setting.lowering.kernels.launch = launch;
    search::PlanPlayer player(setting, plan);
    EXPECT_TRUE(player.Prepare().ok());
    return player.Play({}).value().report.step_time;
  };
  const Duration slow(20'000'000), none;
  EXPECT_GT(seconds("uniform:8@200Gbps", slow), seconds("uniform:8@200Gbps", none));
  EXPECT_EQ(seconds("uniform:8@200Mbps", slow), seconds("uniform:8@200Mbps", none));
}

// Those of the chunk that is done first do not go beside the backward of the other.
TEST(StackPipeline, ReducesAfterTheLastBackward) {
  const StackKernels after = {.reduces_after_backward = true};
  ParallelPlan plan = {.dp = 4, .pp = 2, .microbatches = 4, .chunks = 2};
  plan.schedule = transforms::ScheduleChoice("interleaved");
  const search::Run plain = PlayedWith({}, plan), run = ExpectFolds(after, plan);
  EXPECT_GT(run.report.step_time, plain.report.step_time);
  EXPECT_EQ(run.report.bytes_reduced, plain.report.bytes_reduced);
  // All that is reduced is exposed: no kernel runs beside it.
  const ParallelPlan simple = {.dp = 8, .microbatches = 2, .bucket_size = Bytes(1 << 12)};
  EXPECT_GT(ExpectFolds(after, simple).report.step_time, PlayedWith({}, simple).report.step_time);
}

// Sums in fp32 are twice as many bytes as gradients of 16 bits; those of fp32 stay as they are.
TEST(StackPipeline, ReducesSumsInFp32) {
  const StackKernels sums = {.choice = {.extra = {.reduction = 2}}};
  ParallelPlan plan = {.dp = 4, .microbatches = 2};
  EXPECT_EQ(PlayedWith(sums, plan).report.bytes_reduced, PlayedWith({}, plan).report.bytes_reduced);
  plan.dtype = transforms::StepDType::kBF16;
  EXPECT_EQ(ExpectFolds(sums, plan).report.bytes_reduced.count(),
            2 * PlayedWith({}, plan).report.bytes_reduced.count());
  // What is scattered doubles, what is gathered of updated parameters does not.
  plan.zero = 1;
  EXPECT_EQ(ExpectFolds(sums, plan).report.bytes_reduced.count() * 2,
            3 * PlayedWith({}, plan).report.bytes_reduced.count());
}

// Once an update of a rank, however many stages it has, and where its optimizer is.
TEST(StackPipeline, WaitsOnceAnUpdate) {
  const Duration extra(5'000'000'000);
  ParallelPlan chunks = {.pp = 2, .microbatches = 4, .chunks = 2};
  chunks.schedule = transforms::ScheduleChoice("interleaved");
  ParallelPlan on_hosts = {.dp = 2, .zero = 1};
  on_hosts.offload = *transforms::ParseOffloadPolicy("optimizer");
  for (const ParallelPlan& plan : {ParallelPlan{.microbatches = 4}, ParallelPlan{.dp = 2},
                                   ParallelPlan{.pp = 2, .microbatches = 4}, chunks, on_hosts}) {
    const Duration more =
        ExpectFolds({.step = extra}, plan).report.step_time - PlayedWith({}, plan).report.step_time;
    EXPECT_NEAR(more.seconds(), extra.seconds(), 1e-9) << ToString(plan);
  }
}

// Once for each microbatch; a collective each.
TEST(StackPipeline, PreparesMicrobatchesAndStartsCollectives) {
  const Duration extra(5'000'000'000);
  const ParallelPlan three = {.microbatches = 4};
  EXPECT_EQ(PlayedWith({.prepare = extra}, three).report.step_time,
            PlayedWith({}, three).report.step_time + extra * 4);
  const ParallelPlan blocking = {.dp = 4, .blocking = true};
  const search::Run plain = PlayedWith({}, blocking),
                    run = PlayedWith({.collective = extra}, blocking);
  const Duration more = run.report.step_time - plain.report.step_time;
  EXPECT_GE(more, extra);
  EXPECT_EQ(more.picoseconds() % extra.picoseconds(), 0);
  const ParallelPlan pipeline = {.pp = 2, .microbatches = 2};
  EXPECT_EQ(PlayedWith({.collective = extra}, pipeline).report.step_time,
            PlayedWith({}, pipeline).report.step_time);
}

}  // namespace
}  // namespace stack_pipeline_test_cc
}  // namespace orrery::tools
