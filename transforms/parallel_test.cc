#include "transforms/parallel.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>
#include <vector>

#include "ir/builder.h"
#include "ir/dead_code.h"
#include "ir/models/mlp.h"
#include "ir/op_kind.h"
#include "ir/text/text.h"
#include "ir/verifier.h"
#include "support/status.h"
#include "transforms/memory/zero.h"
#include "transforms/plan/plan_test_util.h"
#include "transforms/sharding/model_step_test_util.h"
#include "transforms/sharding/plain_prices_test_util.h"
#include "transforms/training/microbatch.h"

namespace orrery::transforms {
namespace parallel_test_cc {
namespace {

// Reason and detail of what cannot be done to the MLP of 4 layers of 6 and 12 samples.
std::string WhyNot(const ParallelPlan& plan) {
  const ir::Function step = ir::Mlp({.layers = 4, .dim = 6, .batch = 12}).value();
  const auto infeasible = AsInfeasible(ParallelTransform3d(step, ByFlops(plan)).status());
  if (!infeasible.has_value()) return "feasible";
  return std::string(ToString(infeasible->reason)) + ": " + infeasible->detail;
}

TEST(ParallelTransform3d, CollectsOutputsByTheirFirstDimensionOnly) {
  ir::Builder b("f");
  const ir::ValueId x = b.Data("x", {ir::DType::kF32, {8, 3}, {}});
  b.Return(b.Op(ir::OpKind::kTranspose, {x}, "turned", {{"perm", std::vector<int64_t>{1, 0}}}));
  const ir::Function function = std::move(b).Finalize().value();
  EXPECT_TRUE(ParallelTransform3d(function, {}).ok());
  const auto infeasible = AsInfeasible(ParallelTransform3d(function, {.microbatches = 2}).status());
  ASSERT_TRUE(infeasible.has_value());
  EXPECT_EQ(infeasible->reason, InfeasibleReason::kUnsupported);
  EXPECT_EQ(infeasible->detail,
            "output %turned has the batch in another dimension than its first; wanted one "
            "microbatch");
}

// By cost with layers that differ: the step itself is one of the ways, and equally many layers the
// last, each as it is by itself.
TEST(ParallelTransformWays, AreStepsThatAreCutUnlike) {
  const ir::Function step =
      ModelStep("gpt", "layers=6,hidden=16,heads=2,seq=8,tied_embeddings=0,vocab=8192", 4);
  const auto text = [](const PipelinedStep& pipelined) { return ir::Print(pipelined.Functions()); };
  const auto alone = [&](ParallelPlan plan) {
    return text(ParallelTransform3d(step, plan).value());
  };
  ParallelPlan plan = {.dp = 2, .pp = 3, .microbatches = 2, .zero = 1};
  const auto ways = ParallelTransformWays(step, plan, {}).value();
  ASSERT_GE(ways.size(), 2u);
  std::set<std::string> texts;
  for (const PipelinedStep& way : ways) texts.insert(text(way));
  EXPECT_EQ(texts.size(), ways.size());
  EXPECT_TRUE(texts.contains(alone(plan)));
  plan.stages_by = StagesBy::kLayers;
  EXPECT_EQ(text(ways.back()), alone(plan));
  EXPECT_EQ(ways.back().layers, (std::vector<int64_t>{2, 2, 2}));
  EXPECT_EQ(ParallelTransformWays(step, plan, {})->size(), 1u);
  plan.pp = 1;
  EXPECT_EQ(text(ParallelTransformWays(step, plan, {})->front()), alone(plan));
  plan.pp = 100;
  EXPECT_TRUE(AsInfeasible(ParallelTransformWays(step, plan, {}).status()).has_value());
}

TEST(ParallelTransform3d, SaysWhatDoesNotDivide) {
  EXPECT_EQ(WhyNot({.dp = 3, .hp = 2, .pp = 4, .microbatches = 2}), "feasible");
  EXPECT_EQ(WhyNot({.dp = 5}), "divisibility: dp=5: dimension 0 of %x (12) does not divide");
  EXPECT_EQ(WhyNot({.dp = 4, .microbatches = 2}),
            "divisibility: dp=4: dimension 0 of %x (6) does not divide");
  EXPECT_EQ(WhyNot({.hp = 4}), "divisibility: hp=4: dimension 1 of %w0 (6) does not divide");
  EXPECT_EQ(WhyNot({.pp = 3}), "feasible");
  EXPECT_EQ(WhyNot({.pp = 3, .stages_by = StagesBy::kDistir}),
            "divisibility: 4 layers do not divide into 3 stages");
  EXPECT_EQ(WhyNot({.pp = 5}), "divisibility: 4 layers are too few for 5 stages");
  EXPECT_EQ(WhyNot({.microbatches = 5}),
            "divisibility: a batch of 12 does not divide into 5 microbatches");
}

TEST(ParallelTransform3d, ShardsFurtherAxesByPricesOnly) {
  const ir::Function step = ir::Mlp({.layers = 4, .dim = 6, .batch = 12}).value();
  EXPECT_EQ(ParallelTransform3d(step, {.cp = 2}).status().message(),
            "dp=1 hp=1 pp=1 cp=2 by column and row products alone; wanted prices of a cluster for "
            "cp, ep and pins (`sharding` auto or megatron)");
  EXPECT_EQ(ParallelTransform3d(step, {.hp = 2, .pins = {{"w0", 1}}}).status().message(),
            "dp=1 hp=2 pp=1 by column and row products alone; wanted prices of a cluster for cp, "
            "ep and pins (`sharding` auto or megatron)");
  const ParallelPlan plan = {.dp = 2, .hp = 2, .ep = 3};
  const PlainPrices prices(MakeMesh(plan).value(), {});
  const PipelinedStep sharded = ParallelTransform3d(step, plan, {.prices = &prices}).value();
  EXPECT_THAT(ir::Print(sharded.stages[0].forward.function),
              testing::HasSubstr("%x: f32[12@dp.ep,6"));
}

// An export whose batch the importer could not follow.
TEST(Microbatch, SaysWhereTheBatchIsBakedIn) {
  const ir::Function baked = ir::ParseFunction(R"(
func @f (%x: f32[4,2] data) {
  %c: f32[4,2] = Constant()
  %y: f32[4,2] = Add(%x, %c)
  return %y: result
})")
                                 .value();
  EXPECT_EQ(Microbatch(baked, 2).status().message(),
            "f: Add 'y': shapes [2,2] and [4,2] do not broadcast: the batch of 4 is baked in; 2 "
            "microbatches need each sample computed by itself, from dimension 0 of the inputs; try "
            "an export with a dynamic batch, or one microbatch");
}

// The importer knows at which op.
TEST(ParallelTransform3d, SaysWhereTheBatchWasLost) {
  const ir::Function baked = ir::ParseFunction(R"(
func @f (%x: f32[4,2] data) {
  %c: f32[4,2] = Constant()
  %y: f32[4,2] = Add(%x, %c)
  return %y: result
})")
                                 .value();
  const auto refused = ParallelTransform3d(
      baked, {.microbatches = 2}, {.batch_lost = "f: Slice 'z' cannot follow the batch: it takes"});
  ASSERT_TRUE(AsInfeasible(refused.status()).has_value()) << refused.status();
  EXPECT_EQ(AsInfeasible(refused.status())->detail,
            "f: Slice 'z' cannot follow the batch: it takes: the batch is lost there, and 2 "
            "microbatches need each sample computed by itself; try one microbatch, or a model that "
            "reads sizes and positions of its inputs there, x.shape[0] and torch.arange");
}

// Prices that tell along which axes they were asked.
class PricesOfAxes final : public ShardingPrices {
 public:
  double OpSeconds(const LocalOp& /*op*/) const override { return 1e-6; }
  double StepSeconds(redistribution::MoveKind /*kind*/, const ir::AxisList& axes,
                     Bytes /*size*/) const override {
    axes_.insert(std::vector<ir::AxisIndex>(axes.axes().begin(), axes.axes().end()));
    return 1e-6;
  }
  const std::set<std::vector<ir::AxisIndex>>& axes() const { return axes_; }

 private:
  mutable std::set<std::vector<ir::AxisIndex>> axes_;
};

// Regression: with an axis for ZeRO's groups, stages were priced along axes that the mesh of the
// prices does not have.
TEST(ParallelTransform3d, PricesStagesOnTheMeshOfThePrices) {
  ir::Function step = ir::Mlp({.layers = 4, .dim = 64, .batch = 64}).value();
  const auto axes_of = [&](int64_t group) {
    const PricesOfAxes prices;
    const ParallelPlan plan = {
        .dp = 4, .hp = 2, .pp = 2, .microbatches = 2, .zero = 3, .zero_group = group};
    const auto parts = ParallelTransform3d(step, plan, {.stages = {.prices = &prices}});
    EXPECT_TRUE(parts.ok()) << parts.status();
    EXPECT_EQ(parts->mesh.Find(kZeroAxis).has_value(), group > 0);
    return prices.axes();
  };
  EXPECT_FALSE(axes_of(0).empty());
  EXPECT_EQ(axes_of(2), axes_of(0));
}

TEST(ParallelTransform3d, RefusesAFunctionThatIsShardedAlready) {
  const ir::Function sharded = ir::ParseFunction(
                                   "func @f mesh(dp=2) (%x: f32[4@dp] data) {\n %y: f32[4@dp] = "
                                   "Relu(%x)\n return %y: result\n}")
                                   .value();
  EXPECT_EQ(ParallelTransform3d(sharded, {}).status().message(),
            "f is sharded over mesh(dp=2) already; wanted a function of one device");
}

TEST(ParallelTransform3d, WantsADeviceOfEachRank) {
  const ir::Function step = ir::Mlp({.layers = 4, .dim = 6, .batch = 12}).value();
  EXPECT_EQ(ParallelTransform3d(step, {.dp = 2}, {.devices = {0, 1, 2}}).status().message(),
            "got 3 devices for 2 ranks; wanted one each");
  EXPECT_EQ(ParallelTransform3d(step, {.dp = 2}, {.devices = {5, 3}})->devices,
            (std::vector<int32_t>{5, 3}));
}

TEST(ParallelTransform3d, GivesEveryFunctionTheWholeMesh) {
  const ir::Function step = ir::Mlp({.layers = 4, .dim = 6, .batch = 12}).value();
  const PipelinedStep pipelined = ParallelTransform3d(step, ByFlops({.dp = 2, .pp = 2})).value();
  EXPECT_EQ(pipelined.stages.size(), 2u);
  for (const ir::Function& function : pipelined.Functions()) {
    EXPECT_EQ(function.mesh(), pipelined.mesh);
    EXPECT_TRUE(ir::Verify(function).ok()) << ir::Verify(function);
  }
}

TEST(Microbatch, CutsDataAndLeavesTheLossItsBatch) {
  const ir::Function step = ir::Mlp({.layers = 1, .dim = 6, .batch = 12}).value();
  EXPECT_EQ(BatchSize(step).value(), 12);
  const ir::Function part = Microbatch(step, 3).value();
  EXPECT_EQ(BatchSize(part).value(), 4);
  EXPECT_THAT(ir::Print(part), testing::HasSubstr("%l: f32[4,6] = Loss(%a0, %z) {batch=12}"));
}

TEST(Microbatch, WantsData) {
  const ir::Function function =
      ir::ParseFunction(
          "func @f (%w: f32[4] parameter) {\n %y: f32[4] = Relu(%w)\n return %y: result\n}")
          .value();
  EXPECT_EQ(Microbatch(function, 2).status().message(),
            "f: has no data input; wanted one with the batch as dimension 0");
}

// Data that is no batch, and data that a microbatch would take for one.
TEST(BatchedInputs, AreThoseWithTheBatchInFront) {
  const ir::Function function = ir::ParseFunction(R"(func @f (
  %x: f32[8,4] data,
  %mask: f32[4] data,
  %w: f32[8,4] parameter,
  %labels: f32[8,4] data
) {
  %y: f32[8,4] = Mul(%x, %mask)
  %u: f32[8,4] = Mul(%y, %w)
  %v: f32[8,4] = Add(%u, %labels)
  return %v: result
}
)")
                                    .value();
  EXPECT_THAT(BatchedInputs(function), testing::ElementsAre(true, false, false, true));
}

TEST(RemoveDeadOps, KeepsWhatOutputsNeed) {
  ir::Function function = ir::ParseFunction(R"(func @f (
  %x: f32[4] data
) {
  %a: f32[4] = Relu(%x)
  %b: f32[4] = Relu(%a)
  %c: f32[4] = Relu(%b)
  return %a: result, %c: result
}
)")
                              .value();
  EXPECT_FALSE(ir::RemoveDeadOps(function));
  function.SetOutputs({function.outputs()[0]});
  EXPECT_TRUE(ir::RemoveDeadOps(function));
  EXPECT_EQ(function.order().size(), 1u);
  EXPECT_TRUE(ir::Verify(function).ok()) << ir::Verify(function);
}

}  // namespace
}  // namespace parallel_test_cc
}  // namespace orrery::transforms
