#include "transforms/memory/offload.h"

#include <gtest/gtest.h>

#include <array>

#include "absl/strings/str_cat.h"
#include "ir/models/mlp.h"
#include "ir/text/text.h"
#include "ir/verifier.h"
#include "support/sanitized_test_util.h"
#include "support/status.h"
#include "tests/semantics/compare.h"
#include "tests/semantics/random_step.h"
#include "tests/semantics/shard.h"
#include "transforms/parallel.h"
#include "transforms/plan/plan_test_util.h"
#include "transforms/plan/plan_text.h"
#include "transforms/sharding/model_step_test_util.h"
#include "transforms/sharding/plain_prices_test_util.h"
#include "transforms/training/split_backward.h"
#include "transforms/training/training_step.h"

// Wherever values lie for a while, a step computes what it computes on one device.

namespace orrery::semantics {
namespace offload_test_cc {
namespace {

using transforms::HostWork;
using transforms::ParallelPlan;
using transforms::PipelinedStep;
using transforms::PlanContext;

constexpr std::array<const char*, 4> kPolicies = {"activations", "activations:.", "optimizer",
                                                  "optimizer+activations:."};

/// A step, and what it computes on one device.
struct Expected {
  explicit Expected(ir::Function of)
      : step(std::move(of)), inputs(RandomInputs(step, 7)), outputs(RunAll(step, inputs).outputs) {}

  ir::Function step;
  Named inputs, outputs;
};

int64_t Count(const PipelinedStep& step, HostWork work) {
  int64_t count = 0;
  for (const ir::Function& function : step.Functions()) {
    for (const ir::OpId op : function.order()) {
      count += transforms::HostWorkOf(function, op) == work ? 1 : 0;
    }
  }
  return count;
}

// Copies that the step has; -1 where it cannot be parallelized like this.
int64_t ExpectSameStep(const Expected& expected, const ParallelPlan& plan,
                       const PlanContext& context = {}) {
  SCOPED_TRACE(ToString(plan));
  const auto step =
      transforms::ParallelTransform3d(expected.step, transforms::ByFlops(plan), context);
  if (AsInfeasible(step.status()).has_value()) return -1;
  EXPECT_TRUE(step.ok()) << step.status();
  if (!step.ok()) return -1;
  for (const ir::Function& function : step->Functions()) {
    EXPECT_TRUE(ir::Verify(function).ok()) << ir::Verify(function) << ir::Print(function);
  }
  if (testing::Test::HasFailure()) return -1;
  const PipelinedOutcome outcome =
      RunPipelined(*step, OrdersOf(plan.schedule->name, *step), expected.inputs);
  ExpectSame(outcome.outputs, expected.outputs, 1e-8);
  EXPECT_LE(outcome.disagreement, 1e-8);
  EXPECT_EQ(outcome.lost, 0);
  if (testing::Test::HasFailure()) ADD_FAILURE() << ir::Print(step->Functions());
  return Count(*step, HostWork::kStore);
}

ParallelPlan With(const char* offload, ParallelPlan plan) {
  plan.offload = transforms::ParseOffloadPolicy(offload).value();
  return plan;
}

TEST(Offload, OfAnMlpIsTheSame) {
  ir::Function step = ir::Mlp({.layers = 6, .dim = 12, .batch = 36}).value();
  ASSERT_TRUE(transforms::AppendOptimizer(step, "adam").value());
  const Expected expected(std::move(step));
  for (const int64_t pp : {1, 2}) {
    for (const int64_t hp : {1, 2}) {
      for (const int64_t microbatches : {1, 2, 3}) {
        for (const char* policy : kPolicies) {
          const ParallelPlan plan = {.hp = hp,
                                     .pp = pp,
                                     .microbatches = microbatches,
                                     .offload_prefetch = microbatches - 1};
          ASSERT_GT(ExpectSameStep(expected, With(policy, plan)), 0);
        }
      }
    }
  }
}

TEST(Offload, OfModelsIsTheSame) {
  int ran = 0;
  for (const auto& [family, keys] : std::vector<std::pair<const char*, const char*>>{
           {"gpt", "layers=4,hidden=8,heads=2,seq=4,vocab=8,tied_embeddings=0"},
           {"gpt", "layers=2,hidden=8,heads=4,kv_heads=2,seq=4,vocab=8,mlp=swiglu,ffn=8,flash=1"},
           {"bert", "layers=2,hidden=8,heads=2,seq=4,vocab=8,classes=4"}}) {
    SCOPED_TRACE(keys);
    const Expected expected(transforms::ModelStep(family, keys, 12));
    for (const ParallelPlan& plan : std::vector<ParallelPlan>{
             {}, {.hp = 2}, {.pp = 2, .microbatches = 3}, {.hp = 2, .pp = 2, .microbatches = 2}}) {
      for (const char* policy : kPolicies) {
        ran += ExpectSameStep(expected, With(policy, plan)) >= 0 ? 1 : 0;
        ASSERT_FALSE(HasFailure());
      }
    }
  }
  EXPECT_GT(ran, 40);
}

// With what is rematerialized, and with what data-parallel ranks shard.
TEST(Offload, BesideRecomputationAndZeroIsTheSame) {
  const Expected expected(
      transforms::ModelStep("gpt", "layers=4,hidden=8,heads=2,seq=4,vocab=8,tied_embeddings=0", 8));
  for (const char* recompute : {"none", "selective", "full", "every:2"}) {
    for (const int64_t zero : {0, 1, 2, 3}) {
      for (const char* policy : {"optimizer+activations", "optimizer+activations:."}) {
        for (const int64_t pp : {1, 2}) {
          const ParallelPlan plan = {
              .dp = 2,
              .pp = pp,
              .microbatches = 2,
              .zero = zero,
              .recompute = transforms::ParseRecomputePolicy(recompute).value(),
              .offload_prefetch = zero};
          ASSERT_GT(ExpectSameStep(expected, With(policy, plan)), 0);
        }
      }
    }
  }
}

// What both parts of a backward want is brought back once.
TEST(Offload, OfASplitBackwardIsTheSame) {
  ir::Function step =
      transforms::ModelStep("gpt", "layers=4,hidden=8,heads=2,seq=4,vocab=8,tied_embeddings=0", 8);
  ASSERT_TRUE(transforms::SplitBackward(step).value());
  const Expected expected(std::move(step));
  for (const char* policy : kPolicies) {
    const ParallelPlan plan = {.pp = 2, .microbatches = 4, .schedule = "zb-h1"};
    ASSERT_GT(ExpectSameStep(expected, With(policy, plan), {.split_backward = true}), 0);
  }
}

TEST(Offload, BringsBackWhatItTakesOutOnce) {
  ir::Function model =
      transforms::ModelStep("gpt", "layers=4,hidden=8,heads=2,seq=4,vocab=8,tied_embeddings=0", 8);
  for (const bool split : {false, true}) {
    if (split) {
      ASSERT_TRUE(transforms::SplitBackward(model).value());
    }
    for (const char* policy : kPolicies) {
      const ParallelPlan plan = With(policy, transforms::ByFlops({.pp = 2, .microbatches = 2}));
      const auto step = transforms::ParallelTransform3d(model, plan, {.split_backward = split});
      ASSERT_TRUE(step.ok()) << step.status();
      EXPECT_GT(Count(*step, HostWork::kStore), 0);
      EXPECT_EQ(Count(*step, HostWork::kStore), Count(*step, HostWork::kLoad)) << policy;
    }
  }
}

TEST(Offload, OfRandomStepsIsTheSame) {
  int copies = 0;
  for (uint32_t seed = 0; seed < CasesToWalk(200u); ++seed) {
    SCOPED_TRACE(absl::StrCat("seed=", seed));
    const Expected expected(RandomStep({.seed = seed,
                                        .layers = 1 + static_cast<int>(seed % 6),
                                        .batch = 12,
                                        .width_unit = 12,
                                        .tied = seed % 2 == 0},
                                       seed % 7 == 0 ? "none" : "momentum"));
    const char* const policy = seed % 3 == 0 ? "optimizer+activations" : "optimizer";
    const ParallelPlan plan = {.dp = 1 + seed % 3,
                               .hp = 1 + seed / 3 % 2,
                               .pp = 1 + seed / 6 % 2,
                               .microbatches = 1 + seed % 2,
                               .zero = seed / 2 % 4,
                               .offload_prefetch = seed % 4};
    copies += ExpectSameStep(expected, With(policy, plan)) > 0 ? 1 : 0;
    ASSERT_FALSE(HasFailure());
  }
  EXPECT_GT(copies, CasesToWalk(60));
}

}  // namespace
}  // namespace offload_test_cc
}  // namespace orrery::semantics
