#include "transforms/plan/plan_context.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "ir/models/mlp.h"
#include "ir/op_kind.h"
#include "ir/text/text.h"
#include "transforms/parallel.h"
#include "transforms/plan/plan_test_util.h"
#include "transforms/training/training_step.h"

// What a context adds to a plan, on one step.

namespace orrery::transforms {
namespace plan_context_test_cc {
namespace {

ir::Function MlpStep(ir::DType dtype = ir::DType::kF32) {
  ir::Function step = ir::Mlp({.layers = 4, .dim = 32, .batch = 16, .dtype = dtype}).value();
  EXPECT_TRUE(AppendOptimizer(step, "sgd").ok());
  return step;
}

PipelinedStep Sharded(const ParallelPlan& plan, const PlanContext& context,
                      ir::DType dtype = ir::DType::kF32) {
  auto step = ParallelTransform3d(MlpStep(dtype), ByFlops(plan), context);
  EXPECT_TRUE(step.ok()) << step.status();
  return *std::move(step);
}

TEST(PlanContext, IsNothingUnlessItSaysOtherwise) {
  const PlanContext context;
  EXPECT_EQ(context.prices, nullptr);
  EXPECT_EQ(context.memory_limit, Bytes(0));
  EXPECT_EQ(context.chunks, 1);
  EXPECT_EQ(context.placement, StagePlacement::kLoop);
  EXPECT_TRUE(context.slices.empty());
  EXPECT_EQ(context.decided_on.rows, 0);
  EXPECT_EQ(context.stages.prices, nullptr);
  EXPECT_EQ(context.stages.schedule, nullptr);
  const ParallelPlan plan = {.dp = 2, .pp = 2, .microbatches = 2};
  EXPECT_EQ(ir::Print(Sharded(plan, {}).Functions()),
            ir::Print(Sharded(plan, context).Functions()));
}

// A stage for each chunk of each rank, on ranks as the placement has them.
TEST(PlanContext, SaysWhichStagesRanksHold) {
  const ParallelPlan plan = {.pp = 2, .microbatches = 2};
  EXPECT_EQ(Sharded(plan, {}).stages.size(), 2u);
  const PipelinedStep loop = Sharded(plan, {.chunks = 2});
  EXPECT_THAT(loop.ranks, testing::ElementsAre(0, 1, 0, 1));
  const PipelinedStep v = Sharded(plan, {.chunks = 2, .placement = StagePlacement::kV});
  EXPECT_THAT(v.ranks, testing::ElementsAre(0, 1, 1, 0));
  EXPECT_EQ(ir::Print(loop.stages[0].forward.function), ir::Print(v.stages[0].forward.function));
}

TEST(PlanContext, NamesTheDevicesOfRanks) {
  EXPECT_TRUE(Sharded({.dp = 2}, {}).devices.empty());
  EXPECT_THAT(Sharded({.dp = 2}, {.devices = {5, 3}}).devices, testing::ElementsAre(5, 3));
}

bool Has(const PipelinedStep& step, ir::OpKind kind) {
  for (const ir::Function& function : step.Functions()) {
    for (const ir::OpId op : function.order()) {
      if (function.kind(op) == kind) return true;
    }
  }
  return false;
}

TEST(PlanContext, MixesPrecisions) {
  EXPECT_FALSE(Has(Sharded({}, {}, ir::DType::kBF16), ir::OpKind::kCast));
  EXPECT_TRUE(
      Has(Sharded({.dtype = StepDType::kF8Mixed}, {}, ir::DType::kBF16), ir::OpKind::kCast));
}

}  // namespace
}  // namespace plan_context_test_cc
}  // namespace orrery::transforms
