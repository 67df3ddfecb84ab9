#include "lowering/placement/fuse_runs.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <string>

#include "absl/strings/str_cat.h"
#include "ir/models/mlp.h"
#include "ir/models/model_test_util.h"
#include "ir/text/text.h"
#include "lowering/placement/same_figures_test_util.h"
#include "simulator/engine/play.h"
#include "simulator/report/memory.h"
#include "simulator/report/report.h"
#include "transforms/parallel.h"
#include "transforms/plan/plan_test_util.h"
#include "transforms/schedules/schedule.h"
#include "transforms/slices/slices.h"
#include "transforms/training/split_backward.h"
#include "transforms/training/training_step.h"

// A program of runs of kernels is the program of the kernels: to the picosecond, to the flop, and
// but for what arrives in the middle of a run to the byte.

namespace orrery::lowering {
namespace fuse_runs_test_cc {
namespace {

using transforms::ByFlops;
using transforms::ParallelPlan;

// By 1F1B, on a cluster of that spelling.
simulator::Program LoweredBy1F1B(const transforms::PipelinedStep& step, const std::string& cluster,
                                 const LoweringOptions& options) {
  return Lowered(step, *transforms::FindSchedule("1f1b").value(),
                 cluster::ParseCluster(cluster).value(), options);
}

transforms::PipelinedStep Pipelined(const ir::Function& step, const ParallelPlan& plan) {
  auto pipelined = transforms::ParallelTransform3d(step, ByFlops(plan));
  EXPECT_TRUE(pipelined.ok()) << pipelined.status();
  return *std::move(pipelined);
}

PlayedProgram PlayStep(const transforms::PipelinedStep& step,
                       const transforms::PipelineSchedule& schedule, bool fuse, bool fold = true) {
  return PlayLowered(step, schedule, cluster::ParseCluster("dgx-a100:2").value(),
                     {.fold = fold, .fuse_runs = fuse});
}

PlayedProgram PlayInOneStream(const transforms::PipelinedStep& step,
                              const transforms::PipelineSchedule& schedule, bool fuse) {
  return PlayLowered(step, schedule, cluster::ParseCluster("dgx-a100:2").value(),
                     {.blocking = true, .fuse_runs = fuse});
}

ir::Function SmallGpt() {
  ir::Function step =
      ir::BuildModel("gpt", "layers=8,hidden=64,heads=4,seq=32,vocab=96,tied_embeddings=0", 64);
  EXPECT_TRUE(transforms::MakeTrainingStep(step, {.optimizer = "adam"}).ok());
  EXPECT_TRUE(transforms::SplitBackward(step).ok());
  return step;
}

// The sum of the squared times of kernels, which is the variance of their sum where each varies by
// itself: a label tells how much of it is left of a run's.
double SquaredTimes(const simulator::Program& program) {
  double sum = 0;
  for (int32_t t = 0; t < program.task_count(); ++t) {
    const simulator::TaskId task(t);
    const simulator::TaskLabel label = program.label(program.label_of(task));
    if (label.kind != simulator::TaskKind::kCompute) continue;
    const double time = program.duration(task).seconds() * label.spread_left;
    sum += time * time;
  }
  return sum;
}

void ExpectSame(const PlayedProgram& fused, const PlayedProgram& whole) {
  EXPECT_NEAR(SquaredTimes(fused.program) / SquaredTimes(whole.program), 1, 1e-9);
  EXPECT_LT(2 * fused.program.task_count(), whole.program.task_count());
  // What arrives is an activation of a microbatch or a few.
  ExpectSameFigures(fused.report, whole.report, 1.03);
}

TEST(FuseRuns, ChangesNothingUnderAnySchedule) {
  const ir::Function step = SmallGpt();
  for (const transforms::PipelineSchedule* schedule : transforms::AllSchedules()) {
    if (schedule->slices_sequence) continue;  // for slices of sequences alone: see slices_test
    for (const auto& [dp, hp] : std::vector<std::pair<int64_t, int64_t>>{{1, 1}, {2, 1}, {2, 2}}) {
      for (const bool split : {false, true}) {
        SCOPED_TRACE(testing::Message()
                     << schedule->name << " dp=" << dp << " hp=" << hp << " split=" << split);
        const transforms::PipelineShape shape = schedule->ShapeOf(4, 8);
        const auto pipelined = transforms::ParallelTransform3d(
            step, ByFlops({.dp = dp, .hp = hp, .pp = 4, .microbatches = 8}),
            {.chunks = shape.chunks, .placement = schedule->placement, .split_backward = split});
        ASSERT_TRUE(pipelined.ok()) << pipelined.status();
        ExpectSame(PlayStep(*pipelined, *schedule, true), PlayStep(*pipelined, *schedule, false));
      }
    }
  }
}

// Where all is in one stream, nothing arrives in the middle of a run: peaks are the same, too.
// There are no runs where something does all the same.
TEST(FuseRuns, ChangesNothingInOneStream) {
  const ir::Function step = SmallGpt();
  const std::vector<ParallelPlan> plans = {
      {.dp = 1, .hp = 1},
      {.dp = 2, .hp = 2},
      {.dp = 2, .zero = 3},
      {.dp = 2, .recompute = transforms::ParseRecomputePolicy("full").value()},
      {.dp = 2, .zero = 3, .offload = {.activations = true, .optimizer = true}}};
  for (const transforms::PipelineSchedule* schedule : transforms::AllSchedules()) {
    if (schedule->slices_sequence) continue;
    const transforms::PipelineShape shape = schedule->ShapeOf(4, 8);
    for (size_t i = 0; i < plans.size(); ++i) {
      SCOPED_TRACE(testing::Message() << schedule->name << ", plan " << i);
      ParallelPlan plan = plans[i];
      plan.pp = 4;
      plan.microbatches = 8;
      const auto pipelined = transforms::ParallelTransform3d(
          step, ByFlops(plan), {.chunks = shape.chunks, .placement = schedule->placement});
      ASSERT_TRUE(pipelined.ok()) << pipelined.status();
      const PlayedProgram fused = PlayInOneStream(*pipelined, *schedule, true);
      const PlayedProgram whole = PlayInOneStream(*pipelined, *schedule, false);
      EXPECT_NEAR(SquaredTimes(fused.program) / SquaredTimes(whole.program), 1, 1e-9);
      EXPECT_EQ(fused.program.task_count() < whole.program.task_count(),
                !RunsPairs(*schedule) && !plan.offload.activations);
      ExpectSameFigures(fused.report, whole.report, 1);
    }
  }
}

TEST(FuseRuns, ChangesNothingOfSlices) {
  const ir::Function step = SmallGpt();
  const transforms::PlanContext context = {.slices = transforms::EqualSlices(step, 8).value()};
  for (const auto& [dp, hp] : std::vector<std::pair<int64_t, int64_t>>{{1, 1}, {2, 1}, {2, 2}}) {
    for (const int64_t zero : {0, 1}) {
      SCOPED_TRACE(testing::Message() << "dp=" << dp << " hp=" << hp << " zero=" << zero);
      const auto pipelined = transforms::ParallelTransform3d(
          step, ByFlops({.dp = dp, .hp = hp, .pp = 4, .microbatches = 8, .zero = zero}), context);
      ASSERT_TRUE(pipelined.ok()) << pipelined.status();
      const auto* schedule = transforms::FindSchedule("terapipe").value();
      ExpectSame(PlayStep(*pipelined, *schedule, true), PlayStep(*pipelined, *schedule, false));
      ExpectSameFigures(PlayInOneStream(*pipelined, *schedule, true).report,
                        PlayInOneStream(*pipelined, *schedule, false).report, 1);
    }
  }
}

TEST(FuseRuns, ChangesNothingWhereEveryRankIsSimulated) {
  const ir::Function step = SmallGpt();
  const auto pipelined = transforms::ParallelTransform3d(
      step, ByFlops({.dp = 2, .hp = 2, .pp = 2, .microbatches = 4}));
  ASSERT_TRUE(pipelined.ok()) << pipelined.status();
  const auto* schedule = transforms::FindSchedule("1f1b").value();
  ExpectSame(PlayStep(*pipelined, *schedule, true, false),
             PlayStep(*pipelined, *schedule, false, false));
}

// Each kernel takes the longest that there is: so does a run of them.
TEST(FuseRuns, RunsAreNoLongerThanTheLongestDuration) {
  const ir::Function step = ir::Mlp({.layers = 3, .dim = 3'000'000, .batch = 4'000'000}).value();
  const simulator::Program program =
      LoweredBy1F1B(Pipelined(step, {}), "uniform:1@200Gbps", {.fuse_runs = true});
  EXPECT_EQ(std::ranges::max(program.durations()), kLongestDuration);
  EXPECT_GE(std::ranges::min(program.durations()), Duration(0));
}

// Where a stage has devices of two kinds, a run has a duration of each, and the slower one counts.
TEST(FuseRuns, ChangesNothingOnDevicesOfSeveralKinds) {
  const cluster::Cluster alike = cluster::ParseCluster("dgx-a100:1").value();
  cluster::Cluster mixed = alike;
  cluster::Device slow = alike.device;
  slow.name = "slow";
  slow.memory_bandwidth = Bandwidth(slow.memory_bandwidth.bytes_per_second() / 3);
  mixed.AddDevices(alike.device, 1);
  mixed.AddDevices(slow, 1);
  mixed.AddDevices(alike.device, 6);
  const transforms::PipelinedStep step =
      Pipelined(SmallGpt(), {.dp = 2, .hp = 2, .pp = 2, .microbatches = 4});
  const auto makespan = [&](const cluster::Cluster& cluster, bool fuse) {
    const simulator::Program program =
        Lowered(step, *transforms::FindSchedule("1f1b").value(), cluster,
                {.most_unfolded_tasks = 0, .fuse_runs = fuse});
    return simulator::Play(program, nullptr).value().makespan;
  };
  EXPECT_EQ(makespan(mixed, true), makespan(mixed, false));
  EXPECT_GT(makespan(mixed, true), makespan(alike, true));
}

// Kernels of a run count as one whether they are one task or many, so that a trace does not change
// which ranks are simulated.
TEST(FuseRuns, DecideNothingAboutRanks) {
  const transforms::PipelinedStep step =
      Pipelined(SmallGpt(), {.dp = 2, .hp = 2, .pp = 2, .microbatches = 4});
  std::set<int32_t> counts;
  for (int64_t most = 0; most < 6000; most += 100) {
    const auto ranks = [&](bool fuse) {
      return LoweredBy1F1B(step, "nodes:4x3@450GB/s,nic=50GB/s",
                           {.most_unfolded_tasks = most, .fuse_runs = fuse})
          .rank_count();
    };
    const int32_t fused = ranks(true);
    EXPECT_EQ(fused, ranks(false)) << most;
    counts.insert(fused);
  }
  EXPECT_EQ(counts.size(), 2U);  // both happened
}

// y = f(f(f(f(x)))) + f(x): each stage sends on what it was sent, which no kernel of it makes.
TEST(FuseRuns, ChangesNothingOfWhatIsSentOn) {
  std::string text = "func @skip (%y0: f32[64,256] data";
  for (int i = 0; i < 4; ++i) absl::StrAppend(&text, ", %w", i, ": f32[256,256] parameter");
  absl::StrAppend(&text, ") {\n");
  for (int i = 0; i < 4; ++i) {
    absl::StrAppend(&text, "  %p", i, ": f32[64,256] = MatMul(%y", i, ", %w", i, ")\n  %y", i + 1,
                    ": f32[64,256] = Tanh(%p", i, ")\n");
  }
  absl::StrAppend(&text, "  %s: f32[64,256] = Add(%y4, %y1)\n  return %s: result\n}\n");
  ir::Function step = ir::ParseFunction(text).value();
  ASSERT_TRUE(
      transforms::MakeTrainingStep(step, {.optimizer = "sgd", .loss = {.kind = "mse"}}).ok());
  const transforms::PipelinedStep pipelined = Pipelined(step, {.pp = 4, .microbatches = 8});
  const auto* schedule = transforms::FindSchedule("1f1b").value();
  const PlayedProgram fused = PlayStep(pipelined, *schedule, true);
  const PlayedProgram whole = PlayStep(pipelined, *schedule, false);
  EXPECT_LT(fused.program.task_count(), whole.program.task_count());
  EXPECT_EQ(fused.report.step_time, whole.report.step_time);
  for (size_t r = 0; r < whole.report.ranks.rows().size(); ++r) {
    EXPECT_EQ(fused.report.ranks.rows()[r].finish, whole.report.ranks.rows()[r].finish) << r;
  }
}

}  // namespace
}  // namespace fuse_runs_test_cc
}  // namespace orrery::lowering
