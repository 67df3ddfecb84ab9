#include "lowering/placement/fuse_stretches.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "ir/models/model_test_util.h"
#include "lowering/placement/same_figures_test_util.h"
#include "transforms/parallel.h"
#include "transforms/plan/plan_test_util.h"
#include "transforms/schedules/schedule.h"
#include "transforms/training/training_step.h"

// A program of stretches is the program of their kernels and collectives: to the picosecond, to the
// byte that is reduced, and to the share of each kind of communication.

namespace orrery::lowering {
namespace fuse_stretches_test_cc {
namespace {

using transforms::ParallelPlan;

PlayedProgram Play(const transforms::PipelinedStep& step,
                   const transforms::PipelineSchedule& schedule, const std::string& cluster,
                   LoweringOptions options, bool stretches) {
  options.fuse_runs = true;
  options.fuse_stretches = stretches;
  return PlayLowered(step, schedule, cluster::ParseCluster(cluster).value(), options);
}

void ExpectSame(const PlayedProgram& fused, const PlayedProgram& whole) {
  // These models are so small that what arrives is much of what there is.
  ExpectSameFigures(fused.report, whole.report, 1.1);
  ASSERT_EQ(fused.report.communication.size(), whole.report.communication.size());
  for (const simulator::CommunicationReport& a : fused.report.communication) {
    bool found = false;
    for (const simulator::CommunicationReport& b : whole.report.communication) {
      if (a.kind != b.kind || a.level != b.level) continue;
      found = true;
      EXPECT_DOUBLE_EQ(a.bytes, b.bytes) << a.kind;
      EXPECT_DOUBLE_EQ(a.total_s, b.total_s) << a.kind;
    }
    EXPECT_TRUE(found) << a.kind;
  }
}

ir::Function StepOf(const std::string& keys) {
  ir::Function step = ir::BuildModel("gpt", keys, 64);
  EXPECT_TRUE(transforms::MakeTrainingStep(step, {.optimizer = "adam"}).ok());
  return step;
}

// Calls `play` with a step, its schedule and the ranks that exchange what layers are split into,
// for plans of all schedules: products along hp with the sequence whole or in parts, attention over
// cp, experts over ep; layers of which one waits for its collective long after the other has begun.
template <typename Play>
void ForEachPlan(const std::vector<std::string>& models, const std::vector<ParallelPlan>& plans,
                 const Play& play) {
  for (const std::string& keys : models) {
    const ir::Function step = StepOf(keys);
    for (const char* name : {"1f1b", "gpipe", "interleaved", "zb-h1", "pipedream", "dualpipe"}) {
      for (ParallelPlan plan : plans) {
        plan.microbatches = 8;
        const auto* schedule = transforms::FindSchedule(name).value();
        const transforms::PipelineShape shape = schedule->ShapeOf(static_cast<int32_t>(plan.pp), 8);
        if (!schedule->CheckShape(shape).ok()) continue;
        for (const bool parts : {false, true}) {
          plan.sequence_parallel =
              parts ? transforms::SequenceParallel::kOn : transforms::SequenceParallel::kAuto;
          plan.sharding =
              parts ? transforms::ShardingMethod::kMegatron : transforms::ShardingMethod::kAuto;
          const auto pipelined = transforms::ParallelTransform3d(
              step, plan, {.chunks = shape.chunks, .placement = schedule->placement});
          if (!pipelined.ok()) continue;
          SCOPED_TRACE(testing::Message()
                       << keys << " " << name << " hp=" << plan.hp << " pp=" << plan.pp
                       << " cp=" << plan.cp << " ep=" << plan.ep << " parts=" << parts);
          play(*pipelined, *schedule, plan.hp * plan.cp * plan.ep);
        }
      }
    }
  }
}

// What came of comparing programs with stretches and without.
struct Compared {
  int all = 0, fewer = 0, delayed = 0;  // half the tasks; something in the way of a chain

  void Add(const transforms::PipelinedStep& step, const transforms::PipelineSchedule& schedule,
           const std::string& cluster) {
    const PlayedProgram fused = Play(step, schedule, cluster, {}, true);
    const PlayedProgram whole = Play(step, schedule, cluster, {}, false);
    ExpectSame(fused, whole);
    ++all;
    fewer += 2 * fused.program.task_count() < whole.program.task_count() ? 1 : 0;
    delayed += fused.trace.delays.empty() ? 0 : 1;
  }
};

TEST(FuseStretches, ChangesNothing) {
  Compared compared;
  ForEachPlan({"layers=8,hidden=64,heads=4,seq=32,vocab=96,tied_embeddings=0",
               "layers=4,hidden=512,heads=8,kv_heads=4,seq=128,vocab=512,mlp=swiglu,flash=1",
               "layers=4,hidden=256,heads=4,seq=64,vocab=256,experts=4,topk=2"},
              {{.hp = 2, .pp = 2},
               {.dp = 2, .hp = 4},
               {.dp = 2, .hp = 2, .pp = 2, .zero = 3},
               {.hp = 2, .pp = 2, .cp = 2},
               {.pp = 2, .ep = 4}},
              [&](const auto& step, const auto& schedule, int64_t node) {
                // Stages send over other links than their ranks exchange over: else all is flows.
                compared.Add(step, schedule,
                             absl::StrCat("nodes:", 16 / node, "x", node,
                                          "@450GB/s,nic=50GB/s,nics=", node));
              });
  EXPECT_GT(compared.all, 40);
  EXPECT_GT(3 * compared.fewer, compared.all) << "hardly a stretch is found";
}

// Within a node sends go over the ports of what ranks exchange: then stretches are chains of flows,
// and what is in their way shows in the report, by kind.
TEST(FuseStretches, ChangesNothingWhereLinksAreShared) {
  Compared compared;
  ForEachPlan({"layers=8,hidden=512,heads=8,seq=128,vocab=512,mlp=swiglu,flash=1",
               "layers=4,hidden=512,heads=8,kv_heads=4,seq=128,vocab=512,experts=8,topk=2",
               "layers=8,hidden=256,heads=4,seq=64,vocab=256,experts=4,topk=2"},
              {{.hp = 2, .pp = 2},
               {.hp = 2, .pp = 4},
               {.dp = 2, .hp = 2, .pp = 2, .zero = 1},
               {.hp = 2, .pp = 2, .cp = 2},
               {.hp = 4, .cp = 2},
               {.pp = 2, .ep = 4}},
              [&](const auto& step, const auto& schedule, int64_t) {
                for (const char* cluster : {"dgx-a100:1", "nodes:2x8@1GB/s,nic=1GB/s,nics=1"}) {
                  SCOPED_TRACE(cluster);
                  compared.Add(step, schedule, cluster);
                }
              });
  EXPECT_GT(compared.all, 60);
  EXPECT_GT(3 * compared.fewer, compared.all) << "hardly a stretch is found";
  EXPECT_GT(4 * compared.delayed, compared.all) << "hardly anything is in the way";
}

TEST(FuseStretches, LeavesRanksAloneThatCommunicationSlowsDown) {
  const ir::Function step = StepOf("layers=4,hidden=64,heads=4,seq=32,vocab=96");
  const auto pipelined = transforms::ParallelTransform3d(
      step, transforms::ByFlops({.hp = 2, .pp = 2, .microbatches = 8}));
  ASSERT_TRUE(pipelined.ok()) << pipelined.status();
  const auto* schedule = transforms::FindSchedule("1f1b").value();
  LoweringOptions slow;
  slow.kernels.slowdown = 0.1;
  EXPECT_EQ(Play(*pipelined, *schedule, "dgx-a100:1", slow, true).program.task_count(),
            Play(*pipelined, *schedule, "dgx-a100:1", slow, false).program.task_count());
}

}  // namespace
}  // namespace fuse_stretches_test_cc
}  // namespace orrery::lowering
