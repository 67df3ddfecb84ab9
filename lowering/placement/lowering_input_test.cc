#include "lowering/placement/lowering_input.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <vector>

#include "ir/models/mlp.h"
#include "lowering/lower.h"
#include "simulator/engine/play.h"
#include "transforms/parallel.h"
#include "transforms/plan/plan_test_util.h"
#include "transforms/training/training_step.h"

namespace orrery::lowering {
namespace lowering_input_test_cc {
namespace {

using simulator::Program;
using simulator::TaskId;
using transforms::ParallelPlan;

// A step of an MLP that can be lowered in one way or another.
class Lowered {
 public:
  explicit Lowered(const ParallelPlan& plan) : plan_(transforms::ByFlops(plan)) {
    ir::Function step = ir::Mlp({.layers = 4, .dim = 64, .batch = 48}).value();
    EXPECT_TRUE(transforms::AppendOptimizer(step, "sgd").ok());
    plan_.sharding = transforms::ShardingMethod::kMegatron;
    auto spread = transforms::ParallelTransform3d(step, plan_);
    EXPECT_TRUE(spread.ok()) << spread.status();
    step_ = *std::move(spread);
  }

  Program With(const LoweringOptions& options, std::vector<LoweredStep>* steps = nullptr) const {
    auto program = Lower({.step = step_,
                          .schedule = *plan_.schedule,
                          .cluster = cluster_,
                          .cost_model = *cost_model_,
                          .options = options,
                          .lowered = steps});
    EXPECT_TRUE(program.ok()) << program.status();
    return *std::move(program);
  }

 private:
  ParallelPlan plan_;
  transforms::PipelinedStep step_;
  const cluster::Cluster cluster_ = cluster::ParseCluster("dgx-a100:1").value();
  const std::unique_ptr<const cost_models::CostModel> cost_model_ =
      cost_models::MakeCostModel("roofline").value();
};

Duration StepTime(const Program& program) { return simulator::Play(program)->makespan; }

bool HasOtherStreams(const Program& program) {
  for (int32_t s = 0; s < program.stream_count(); ++s) {
    if (program.stream(simulator::StreamId(s)).kind != simulator::StreamKind::kCompute) {
      return true;
    }
  }
  return false;
}

TEST(LoweringOptions, BlockingIsOnTheComputeStream) {
  const Lowered lowered({.dp = 2, .pp = 2, .microbatches = 4});
  const Program blocking = lowered.With({.blocking = true}), free = lowered.With({});
  for (int32_t t = 0; t < blocking.task_count(); ++t) {
    for (const simulator::StreamId stream : blocking.streams_of(TaskId(t))) {
      EXPECT_EQ(blocking.stream(stream).kind, simulator::StreamKind::kCompute);
    }
  }
  EXPECT_TRUE(HasOtherStreams(free));
  EXPECT_GE(StepTime(blocking), StepTime(free));
}

// Where all ranks of a stage are alike, one stands for them.
TEST(LoweringOptions, FoldingChangesNoTime) {
  const Lowered lowered({.dp = 4, .pp = 2, .microbatches = 4});
  const Program folded = lowered.With({}), every = lowered.With({.fold = false});
  EXPECT_EQ(folded.rank_count(), 2);
  EXPECT_EQ(every.rank_count(), 8);
  EXPECT_EQ(folded.rank(simulator::RankClassId(0)).members.size(), 4u);
  EXPECT_EQ(StepTime(folded), StepTime(every));
  // However few tasks there may be, alike is alike.
  EXPECT_EQ(lowered.With({.most_unfolded_tasks = 0}).rank_count(), 2);
}

TEST(LoweringOptions, MemoryIsLimitedAsSaid) {
  const Lowered lowered({.dp = 2});
  const auto capacity = [&](const LoweringOptions& options) {
    return lowered.With(options).rank(simulator::RankClassId(0)).capacity;
  };
  EXPECT_EQ(capacity({}), Bytes(0));
  EXPECT_EQ(capacity({.memory_limit = Bytes(12345)}), Bytes(12345));
  EXPECT_EQ(capacity({.device_memory = true}), cluster::ParseCluster("dgx-a100:1")->device.memory);
}

// Reductions of gradients: one of each, or of all together.
TEST(LoweringOptions, BucketsMergeReductions) {
  const Lowered lowered({.dp = 4});
  const auto collectives = [](const Program& program) {
    int count = 0;
    for (int32_t t = 0; t < program.task_count(); ++t) {
      const auto label = program.label(program.label_of(TaskId(t)));
      count += label.kind == simulator::TaskKind::kCollective ? 1 : 0;
    }
    return count;
  };
  EXPECT_EQ(collectives(lowered.With({.bucket_size = Bytes(0)})), 4);  // weights
  EXPECT_EQ(collectives(lowered.With({.bucket_size = Bytes(1 << 30)})), 1);
  // Two gradients of 64 x 64 floats fit 32 KiB.
  EXPECT_EQ(collectives(lowered.With({.bucket_size = Bytes(32 << 10)})), 2);
}

TEST(LoweringOptions, LinksAndRunsChangeNoTime) {
  const Lowered lowered({.dp = 2, .pp = 2, .microbatches = 4});
  const Program plain = lowered.With({});
  const Program links = lowered.With({.every_link = true});
  const Program runs = lowered.With({.fuse_runs = true});
  EXPECT_GT(links.resource_count(), 0);
  EXPECT_GE(links.resource_count(), plain.resource_count());
  EXPECT_LT(runs.task_count(), plain.task_count());
  EXPECT_EQ(StepTime(links), StepTime(plain));
  EXPECT_EQ(StepTime(runs), StepTime(plain));
}

// Of each step of the schedule the tasks of its stage, microbatch and phase, none in two steps.
TEST(LoweringInput, TellsWhereStepsArePlaced) {
  for (const ParallelPlan& plan :
       {ParallelPlan{.dp = 2, .pp = 2, .microbatches = 4}, ParallelPlan{.pp = 4, .microbatches = 3},
        ParallelPlan{.microbatches = 2, .schedule = "gpipe"}}) {
    const Lowered lowered(plan);
    std::vector<LoweredStep> steps;
    const Program program = lowered.With({}, &steps);
    EXPECT_EQ(std::ssize(steps), 2 * plan.pp * plan.microbatches);
    int32_t end = 0;
    for (const LoweredStep& row : steps) {
      EXPECT_GE(row.begin.index(), end);  // one behind the other
      EXPECT_LT(row.begin.index(), row.end.index());
      end = row.end.index();
      const auto phase = row.step.kind == transforms::StepKind::kForward
                             ? simulator::Phase::kForward
                             : simulator::Phase::kBackward;
      int own = 0;
      for (int32_t t = row.begin.index(); t < end; ++t) {
        const auto label = program.label(program.label_of(TaskId(t)));
        own += label.stage == row.step.stage && label.phase == phase &&
                       program.microbatch_of(TaskId(t)) == row.step.microbatch
                   ? 1
                   : 0;
      }
      EXPECT_GT(own, 0);
    }
    EXPECT_LE(end, program.task_count());
  }
}

}  // namespace
}  // namespace lowering_input_test_cc
}  // namespace orrery::lowering
