#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "absl/strings/str_cat.h"
#include "ir/models/mlp.h"
#include "ir/text/text.h"
#include "transforms/parallel.h"
#include "transforms/plan/plan_test_util.h"
#include "transforms/sharding/auto_shard.h"
#include "transforms/sharding/model_step_test_util.h"
#include "transforms/sharding/plain_prices_test_util.h"
#include "transforms/training/microbatch.h"
#include "transforms/training/training_step.h"

// What AutoShard counts: memory, and what an update takes.

namespace orrery::transforms {
namespace auto_shard_memory_test_cc {
namespace {

using ir::Function;

constexpr PlainPrices::Rates kDear = {.flops = 1e15, .bytes = 1e15, .link = 1e6, .latency = 1e-3};

TEST(AutoShard, CountsTheMemoryOfAnMlpByHand) {
  const ir::Mesh mesh({{"dp", 1}, {"hp", 2}});
  const auto memory = [&](absl::string_view optimizer, int64_t in_flight) {
    Function step = ir::Mlp({.layers = 2, .dim = 64, .batch = 3}).value();
    if (optimizer != "none") {
      EXPECT_TRUE(AppendOptimizer(step, optimizer).value());
    }
    AutoShardReport report;
    const auto sharded = AutoShard(step, mesh, BatchedInputs(step), PlainPrices(mesh, kDear),
                                   {.in_flight = in_flight}, &report);
    EXPECT_TRUE(sharded.ok()) << sharded.status();
    return report.memory;
  };
  constexpr double kWeights = 2 * 64 * 64 * 4, kRows = 3 * 64 * 4;
  // Of x and z, and y0, a0, y1 and a1 for backward.
  EXPECT_EQ(memory("none", 1), kWeights + (2 + 4) * kRows);
  EXPECT_EQ(memory("none", 3), kWeights + (2 + 3 * 4) * kRows);
  EXPECT_EQ(memory("sgd", 1), 2 * kWeights + 6 * kRows);   // and gradients
  EXPECT_EQ(memory("adam", 1), 4 * kWeights + 6 * kRows);  // and two states
}

// a0 is pinned in halves, and its product wants it whole, forward and backward: what is kept is the
// whole, or the half that it is gathered from once more.
TEST(AutoShard, CountsWhatIsGatheredForBackward) {
  const Function step = ir::Mlp({.layers = 2, .dim = 64, .batch = 3}).value();
  const ir::Mesh mesh({{"dp", 1}, {"hp", 2}});
  AutoShardReport report;
  const auto sharded =
      AutoShard(step, mesh, BatchedInputs(step), PlainPrices(mesh, kDear),
                {.pins = {{.pattern = "^a0$", .dim = 1}, {.pattern = "^w1$"}}}, &report);
  ASSERT_TRUE(sharded.ok()) << sharded.status();
  ASSERT_THAT(ir::Print(*sharded), testing::HasSubstr("AllGather(%a0)"));
  constexpr double kRows = 3 * 64 * 4;
  EXPECT_EQ(report.memory - report.in_parts, kRows / 2);
}

// To keep an eighth of a table would cost gathering it for all layers at once: no stage could begin
// between them.
TEST(AutoShard, KeepsTablesWholeWhateverMemoryCosts) {
  const Function step = ModelStep(
      "gpt", "layers=2,hidden=16,heads=4,seq=8,vocab=32,flash=1,position=rotary,norm=rms", 2);
  const ir::Mesh mesh({{"dp", 1}, {"hp", 2}});
  const auto sharded =
      AutoShard(step, mesh, BatchedInputs(step), PlainPrices(mesh, kDear), {.memory_price = 1e6});
  ASSERT_TRUE(sharded.ok()) << sharded.status();
  int tables = 0;
  for (const ir::Input& input : sharded->inputs()) {
    if (input.role != ir::InputRole::kBuffer) continue;
    ++tables;
    EXPECT_EQ(sharded->type(input.value).sharding, ir::Sharding())
        << ir::PrintValue(*sharded, input.value);
  }
  EXPECT_EQ(tables, 2);
}

// What data-parallel ranks shard counts as a rank's part of it: of p = 4 here.
TEST(ParallelTransform3d, CountsMemoryAsZeroShardsIt) {
  Function step = ir::Mlp({.layers = 4, .dim = 64, .batch = 24}).value();
  ASSERT_TRUE(AppendOptimizer(step, "adam").value());
  ParallelPlan plan = {.dp = 4, .hp = 2};
  const PlainPrices prices(MakeMesh(plan).value(), kDear);
  const auto sharded = [&](int64_t stage, double limit) {
    plan.zero = stage;
    const auto result = ParallelTransform3d(
        step, plan, {.prices = &prices, .memory_limit = Bytes(static_cast<int64_t>(limit))});
    EXPECT_TRUE(result.ok()) << result.status();
    std::string text;
    for (const Function& function : result->Functions()) text += ir::Print(function);
    return text;
  };
  // The least limit that changes nothing: with less, something is held in other parts.
  const auto least = [&](int64_t stage) {
    const std::string unlimited = sharded(stage, 0);
    double low = 1, high = 1 << 20;
    while (high - low > 1) {
      const double middle = std::floor((low + high) / 2);
      (sharded(stage, middle) == unlimited ? high : low) = middle;
    }
    return high;
  };
  constexpr double kWeights = 4 * 64 * 64 * 4 / 2.0;  // bytes, of a rank of two
  const double whole = least(0);
  EXPECT_EQ(whole - least(1), 1.5 * kWeights);                  // two states
  EXPECT_EQ(whole - least(2), (1.5 + 0.75) * kWeights);         // and gradients
  EXPECT_EQ(whole - least(3), (1.5 + 0.75 + 0.75) * kWeights);  // and parameters
}

TEST(AutoShard, ALimitThatIsKeptAnywayChangesNothing) {
  const Function step = ModelStep("gpt", "layers=1,hidden=16,heads=4,seq=8,vocab=32,flash=1", 2);
  const ir::Mesh mesh({{"dp", 1}, {"ep", 2}, {"cp", 2}, {"hp", 2}});
  const PlainPrices prices(mesh, kDear);
  AutoShardReport free, kept;
  const auto one = AutoShard(step, mesh, BatchedInputs(step), prices, {}, &free);
  ASSERT_TRUE(one.ok()) << one.status();
  for (const double times : {1.0, 1.25, 1.5, 2.0, 3.0}) {
    const Bytes limit(static_cast<int64_t>(times * free.memory));
    const auto other =
        AutoShard(step, mesh, BatchedInputs(step), prices, {.memory_limit = limit}, &kept);
    ASSERT_TRUE(other.ok()) << other.status();
    EXPECT_EQ(ir::Print(*other), ir::Print(*one)) << times;
  }
}

TEST(ParallelTransform3d, CountsMemoryOfAllStagesAndMicrobatches) {
  Function step = ir::Mlp({.layers = 4, .dim = 64, .batch = 600}).value();
  ASSERT_TRUE(AppendOptimizer(step, "adam").value());
  const auto sharded = [&](const ParallelPlan& plan, double limit) {
    const PlainPrices prices(MakeMesh(plan).value(), kDear);
    const auto result = ParallelTransform3d(
        step, plan, {.prices = &prices, .memory_limit = Bytes(static_cast<int64_t>(limit))});
    EXPECT_TRUE(result.ok()) << result.status();
    std::string text;
    for (const Function& function : result->Functions()) text += ir::Print(function);
    return text;
  };
  constexpr double kWeights = 4 * 64 * 64 * 4, kRows = 600 * 64 * 4;
  const ParallelPlan two = ByFlops({.hp = 2, .pp = 2, .microbatches = 2});
  // Of x and z, and of each layer two; of two microbatches in flight.
  const double all = 4 * kWeights + kRows / 2 * (2 + 2 * 8);
  EXPECT_EQ(sharded(two, all / 2), sharded(two, 0));
  EXPECT_NE(sharded(two, all / 2 - 1024), sharded(two, 0));
}

// Where an update comes after each microbatch, it counts for each.
TEST(ParallelTransform3d, CountsAnUpdateForEachMicrobatchWhereItIsMade) {
  Function step = ir::Mlp({.layers = 2, .dim = 64, .batch = 3000}).value();
  ASSERT_TRUE(AppendOptimizer(step, "adam").value());
  const ParallelPlan plan = {.hp = 2, .microbatches = 1000};
  const PlainPrices prices(MakeMesh(plan).value(),
                           {.flops = 1e15, .bytes = 1e8, .link = 3e8, .latency = 0});
  const auto sharded =
      ParallelTransform3d(step, plan, {.prices = &prices, .updates_each_microbatch = true});
  ASSERT_TRUE(sharded.ok()) << sharded.status();
  EXPECT_THAT(ir::Print(sharded->stages[0].forward.function),
              testing::HasSubstr("%w0: f32[64@hp,64] parameter"));
}

// Nothing divides. Of what a step takes, U is counted once a step, and A, to add up gradients, with
// each of several microbatches: F + U, F + U/2 + A, F + U/4 + A.
TEST(AutoShard, CountsWhatGradientsTakeToAddUp) {
  Function step = ir::Mlp({.layers = 2, .dim = 3, .batch = 3}).value();
  ASSERT_TRUE(AppendOptimizer(step, "sgd").value());
  const ir::Mesh mesh({{"dp", 1}, {"hp", 2}});
  constexpr double kBytes = 1e9;
  const PlainPrices prices(mesh, {.flops = 1e30, .bytes = kBytes, .link = 1e9, .latency = 0});
  const auto seconds = [&](int64_t microbatches) {
    AutoShardReport report;
    const auto sharded =
        AutoShard(step, mesh, BatchedInputs(step), prices, {.microbatches = microbatches}, &report);
    EXPECT_TRUE(sharded.ok()) << sharded.status();
    return report.seconds;
  };
  const double adding = seconds(2) - seconds(1) - 2 * (seconds(4) - seconds(2));
  // Two weights: the sum so far and the summand are read, the sum is written.
  EXPECT_NEAR(adding, 2 * 3 * (3 * 3 * 4) / kBytes, 1e-3 / kBytes);
}

TEST(ParallelTransform3d, CountsAnUpdateOnceAStep) {
  Function step = ir::Mlp({.layers = 2, .dim = 64, .batch = 3000}).value();
  ASSERT_TRUE(AppendOptimizer(step, "adam").value());
  const ParallelPlan plan = {.hp = 2, .microbatches = 1000};
  const PlainPrices prices(MakeMesh(plan).value(),
                           {.flops = 1e15, .bytes = 1e8, .link = 3e8, .latency = 0});
  const auto sharded = ParallelTransform3d(step, plan, {.prices = &prices});
  ASSERT_TRUE(sharded.ok()) << sharded.status();
  EXPECT_THAT(ir::Print(sharded->stages[0].forward.function),
              testing::HasSubstr("%w0: f32[64,64] parameter"));
}

TEST(AutoShard, AnUpdateSplitAloneDoesNotPayOverManyMicrobatches) {
  Function step = ir::Mlp({.layers = 2, .dim = 64, .batch = 3}).value();
  ASSERT_TRUE(AppendOptimizer(step, "adam").value());
  const ir::Mesh mesh({{"dp", 1}, {"hp", 2}});
  constexpr PlainPrices::Rates kMemory = {.flops = 1e15, .bytes = 1e8, .link = 3e8, .latency = 0};
  const auto w0 = [&](int64_t microbatches) {
    const auto sharded = AutoShard(step, mesh, BatchedInputs(step), PlainPrices(mesh, kMemory),
                                   {.microbatches = microbatches});
    return ir::ToString(sharded->type(sharded->inputs()[2].value), mesh);
  };
  EXPECT_EQ(w0(1), "f32[64@hp,64]");
  EXPECT_EQ(w0(1000), "f32[64,64]");  // its gradient is put together once
}

}  // namespace
}  // namespace auto_shard_memory_test_cc
}  // namespace orrery::transforms
