#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <filesystem>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "ir/models/mlp.h"
#include "ir/text/text.h"
#include "ir/verifier.h"
#include "support/file.h"
#include "support/paths_test_util.h"
#include "support/sanitized_test_util.h"
#include "support/status.h"
#include "tests/semantics/compare.h"
#include "tests/semantics/random_step.h"
#include "tests/semantics/shard.h"
#include "transforms/parallel.h"
#include "transforms/plan/plan_test_util.h"
#include "transforms/plan/plan_text.h"
#include "transforms/schedules/schedule.h"
#include "transforms/sharding/shard.h"
#include "transforms/training/microbatch.h"
#include "transforms/training/split_backward.h"
#include "transforms/training/training_step.h"

// Parallelizing a training step changes nothing that it computes: loss, gradients, updated weights
// and optimizer state are those of one device, whatever the degrees.

namespace orrery::semantics {
namespace equivalence_test_cc {
namespace {

using transforms::ParallelPlan;

// Plays `step` parallelized by `plan` and compares it with one device.
void ExpectPipelinedSame(const ir::Function& step, const ParallelPlan& plan,
                         const transforms::PlanContext& context = {}) {
  SCOPED_TRACE(ToString(plan));
  const auto pipelined = transforms::ParallelTransform3d(step, transforms::ByFlops(plan), context);
  ASSERT_TRUE(pipelined.ok()) << pipelined.status() << "\n" << ir::Print(step);
  for (const ir::Function& function : pipelined->Functions()) {
    ASSERT_TRUE(ir::Verify(function).ok()) << ir::Verify(function);
  }
  const Named inputs = RandomInputs(step, 7);
  const transforms::RankOrders orders = OrdersOf(plan.schedule->name, *pipelined);
  const PipelinedOutcome sharded = RunPipelined(*pipelined, orders, inputs);
  ExpectSame(sharded.outputs, RunAll(step, inputs).outputs);
  EXPECT_LE(sharded.disagreement, kTolerance);
  EXPECT_EQ(sharded.lost, 0);
  if (testing::Test::HasFailure()) {
    ADD_FAILURE() << ir::Print(step) << ir::Print(pipelined->Functions());
  }
}

TEST(Equivalence, ShardedMlpIsTheMlp) {
  for (const int64_t layers : {1, 2, 3, 4, 5}) {
    const ir::Function step = ir::Mlp({.layers = layers, .dim = 6, .batch = 12}).value();
    const Named inputs = RandomInputs(step, 1);
    const Named expected = RunAll(step, inputs).outputs;
    for (const auto& [dp, hp] : std::vector<std::pair<int64_t, int64_t>>{
             {1, 1}, {2, 1}, {1, 2}, {2, 2}, {1, 3}, {3, 2}, {4, 3}, {1, 6}}) {
      SCOPED_TRACE(absl::StrCat("layers=", layers, " dp=", dp, " hp=", hp));
      const auto sharded = transforms::Shard(step, ir::Mesh({{"dp", dp}, {"hp", hp}}));
      ASSERT_TRUE(sharded.ok()) << sharded.status();
      const Outcome outcome = RunAll(*sharded, inputs);
      ExpectSame(outcome.outputs, expected);
      EXPECT_LE(outcome.disagreement, kTolerance);
    }
  }
}

TEST(Equivalence, PipelinedMlpIsTheMlp) {
  for (const int64_t layers : {2, 3, 6}) {
    ir::Function step = ir::Mlp({.layers = layers, .dim = 6, .batch = 24}).value();
    ASSERT_TRUE(transforms::AppendOptimizer(step, "adam").value());
    for (const int64_t pp : {1, 2, 3}) {
      if (layers % pp != 0) continue;
      for (const ParallelPlan& plan :
           std::vector<ParallelPlan>{{.dp = 1, .hp = 1, .microbatches = 1},
                                     {.dp = 1, .hp = 1, .microbatches = 4},
                                     {.dp = 2, .hp = 2, .microbatches = 1},
                                     {.dp = 2, .hp = 3, .microbatches = 3},
                                     {.dp = 3, .hp = 2, .microbatches = 4, .order = "pp,dp,hp"}}) {
        ParallelPlan with_stages = plan;
        with_stages.pp = pp;
        ExpectPipelinedSame(step, with_stages);
      }
    }
  }
}

// No optimizer: gradients themselves come back, as sums over microbatches.
TEST(Equivalence, PipelinedGradientsAreTheGradients) {
  const ir::Function step = ir::Mlp({.layers = 4, .dim = 4, .batch = 8}).value();
  for (const int64_t dp : {1, 2}) {
    for (const int64_t microbatches : {1, 2, 4}) {
      ExpectPipelinedSame(
          step, {.dp = dp, .hp = 2, .pp = 2, .microbatches = microbatches, .schedule = "gpipe"});
    }
  }
}

TEST(Equivalence, RandomStepsSharded) {
  constexpr std::array<std::pair<int64_t, int64_t>, 5> kDegrees = {
      {{2, 1}, {1, 2}, {2, 2}, {1, 4}, {4, 2}}};
  for (uint32_t seed = 0; seed < CasesToWalk(500u); ++seed) {
    const ir::Function step = RandomStep({.seed = seed,
                                          .layers = 1 + static_cast<int>(seed % 6),
                                          .batch = 4,
                                          .width_unit = 4,
                                          .tied = seed % 2 == 0},
                                         seed % 3 == 0 ? "none" : "momentum");
    const auto [dp, hp] = kDegrees[seed % kDegrees.size()];
    SCOPED_TRACE(absl::StrCat("seed=", seed, " dp=", dp, " hp=", hp));
    const auto sharded = transforms::Shard(step, ir::Mesh({{"dp", dp}, {"hp", hp}}));
    ASSERT_TRUE(sharded.ok()) << sharded.status() << ir::Print(step);
    ASSERT_TRUE(ir::Verify(*sharded).ok()) << ir::Verify(*sharded);
    const Named inputs = RandomInputs(step, seed);
    const Outcome outcome = RunAll(*sharded, inputs);
    ExpectSame(outcome.outputs, RunAll(step, inputs).outputs);
    EXPECT_LE(outcome.disagreement, kTolerance);
    if (HasFailure()) FAIL() << ir::Print(step) << ir::Print(*sharded);
  }
}

TEST(Equivalence, RandomStepsPipelined) {
  constexpr std::array<const char*, 3> kSchedules = {"1f1b", "gpipe", "distir"};
  constexpr std::array<const char*, 3> kOrders = {"hp,dp,pp", "pp,hp,dp", "dp,pp,hp"};
  constexpr std::array<absl::string_view, 3> kOptimizers = {"sgd", "momentum", "adam"};
  for (uint32_t seed = 0; seed < CasesToWalk(600u); ++seed) {
    SCOPED_TRACE(absl::StrCat("seed=", seed));
    const int64_t pp = 1 + seed % 4, layers = pp * (1 + seed / 4 % 3);
    const int64_t hp = 1 + seed / 2 % 3, dp = 1 + seed / 3 % 3, microbatches = 1 + seed / 5 % 4;
    const ir::Function step = RandomStep({.seed = seed,
                                          .layers = static_cast<int>(layers),
                                          .batch = dp * microbatches * 2,
                                          .width_unit = hp},
                                         std::string(kOptimizers[seed % 3]));
    ExpectPipelinedSame(step, {.dp = dp,
                               .hp = hp,
                               .pp = pp,
                               .microbatches = microbatches,
                               .schedule = kSchedules[seed / 3 % 3],
                               .order = kOrders[seed / 7 % 3]});
    if (HasFailure()) FAIL();
  }
}

// Every schedule there is, with stages of several layers, chunks, backwards in two parts, two
// pipelines in opposite directions, and with layers that are rematerialized.
TEST(Equivalence, RandomStepsUnderEverySchedule) {
  std::vector<transforms::RecomputePolicy> policies;
  for (const char* policy : {"none", "full", "none", "every:2", "none"}) {
    policies.push_back(transforms::ParseRecomputePolicy(policy).value());
  }
  uint32_t seed = 0;
  for (const transforms::PipelineSchedule* schedule : transforms::AllSchedules()) {
    for (int round = 0; round < CasesToWalk(24); ++round, ++seed) {
      const bool two_way = schedule->placement == transforms::StagePlacement::kTwoWay;
      const int64_t pp = two_way ? 2 + seed % 4 / 3 * 2 : 1 + seed % 3;
      const int64_t hp = 1 + seed / 3 % 2, dp = 1 + seed / 6 % 2;
      const int64_t chunks = schedule->chunks == 0 ? 2 + seed % 2 : schedule->chunks;
      const int64_t microbatches = pp * (2 + seed % 3);
      SCOPED_TRACE(absl::StrCat("seed=", seed, " chunks=", chunks, " ", schedule->name));
      ir::Function step = RandomStep({.seed = seed,
                                      .layers = static_cast<int>(pp * chunks * (1 + seed % 2)),
                                      .batch = dp * microbatches * 2,
                                      .width_unit = static_cast<int>(hp),
                                      .tied = seed % 5 == 0},
                                     seed % 2 == 0 ? "momentum" : "adam");
      const bool split = seed % 4 != 0;
      if (split) {
        ASSERT_TRUE(transforms::SplitBackward(step).ok());
      }
      ExpectPipelinedSame(step,
                          {.dp = dp,
                           .hp = hp,
                           .pp = pp,
                           .microbatches = microbatches,
                           .schedule = transforms::ScheduleChoice::Parse(schedule->name).value(),
                           .recompute = policies[seed % policies.size()]},
                          {.chunks = static_cast<int32_t>(chunks),
                           .placement = schedule->placement,
                           .split_backward = split});
      if (HasFailure()) FAIL();
    }
  }
}

// A mean of all elements less a multiple of one of samples, as a variational autoencoder has.
TEST(Equivalence, ALossOfSeveralMeansIsThatOfTheBatch) {
  auto step = ir::ParseFunction(R"(func @means (
  %x: f32[8,4] data,
  %w0: f32[4,4] parameter,
  %w1: f32[4,4] parameter
) {
  %h: f32[8,4] = MatMul(%x, %w0)
  %y: f32[8,4] = MatMul(%h, %w1)
  %square: f32[8,4] = Mul(%y, %y)
  %all: f32[] = ReduceMean(%square) {axes=[0, 1]}
  %row: f32[8] = ReduceSum(%h) {axes=[1]}
  %rows: f32[] = ReduceMean(%row) {axes=[0]}
  %part: f32[] = Scale(%rows) {factor=0.3}
  %loss: f32[] = Sub(%all, %part)
  return %loss: result
}
)");
  ASSERT_TRUE(step.ok()) << step.status();
  ASSERT_TRUE(transforms::MakeTrainingStep(
                  *step, {.optimizer = "sgd", .loss = {.kind = "sum"}, .simplify = false})
                  .ok());
  for (const ParallelPlan& plan : std::vector<ParallelPlan>{
           {.dp = 2}, {.microbatches = 4}, {.dp = 2, .pp = 2, .microbatches = 2}}) {
    ExpectPipelinedSame(*step, plan);
  }
}

// Rows that no sample names for itself: a replica has a summand of their gradient until the end of
// a step.
TEST(Equivalence, ATableOfPositionsIsTheTable) {
  auto step = ir::ParseFunction(R"(func @positions (
  %x: f32[8,4,6] data,
  %table: f32[5,6] parameter,
  %w0: f32[6,6] parameter,
  %w1: f32[6,6] parameter
) {
  %ids: i64[4] = Constant() {values=[3, 0, 0, 2]}
  %rows: f32[4,6] = Gather(%table, %ids) {axis=0}
  %h: f32[8,4,6] = Add(%x, %rows)
  %z: f32[8,4,6] = MatMul(%h, %w0)
  %y: f32[8,4,6] = MatMul(%z, %w1)
  return %y: result
}
)");
  ASSERT_TRUE(step.ok()) << step.status();
  ASSERT_TRUE(transforms::MakeTrainingStep(
                  *step, {.optimizer = "sgd", .loss = {.kind = "sum"}, .simplify = false})
                  .ok());
  for (const ParallelPlan& plan : std::vector<ParallelPlan>{
           {.dp = 2}, {.microbatches = 4}, {.dp = 2, .hp = 2, .pp = 2, .microbatches = 2}}) {
    ExpectPipelinedSame(*step, plan);
  }
}

// The forward functions of tests/regress/, one for each thing that once went wrong, parallelized in
// every way that their layers divide into.
TEST(Equivalence, WhatOnceWentWrong) {
  int files = 0, ways = 0;
  for (const auto& entry : std::filesystem::directory_iterator(SourceDir() + "/tests/regress")) {
    if (entry.path().extension() != ".ir") continue;
    SCOPED_TRACE(entry.path().string());
    auto step = ir::ParseFunction(ReadFile(entry.path().string()).value());
    ASSERT_TRUE(step.ok()) << step.status();
    ASSERT_TRUE(transforms::MakeTrainingStep(
                    *step, {.optimizer = "momentum", .loss = {.kind = "mse"}, .simplify = false})
                    .ok());
    for (int64_t way = 0; way < 16; ++way) {
      const auto bit = [&](int n) { return int64_t{1} + (way >> n & 1); };
      const ParallelPlan plan = {.dp = bit(0), .hp = bit(1), .pp = bit(2), .microbatches = bit(3)};
      ExpectPipelinedSame(*step, plan);
      ++ways;
    }
    ++files;
  }
  EXPECT_GE(files, 7);
  EXPECT_EQ(ways, 16 * files);
}

}  // namespace
}  // namespace equivalence_test_cc
}  // namespace orrery::semantics
