#include "transforms/offload.h"

#include <gtest/gtest.h>

#include <array>

#include "absl/strings/str_cat.h"
#include "ir/models/mlp.h"
#include "ir/text.h"
#include "ir/verifier.h"
#include "support/status.h"
#include "tests/semantics/compare.h"
#include "tests/semantics/random_step.h"
#include "tests/semantics/spread.h"
#include "transforms/model_step_test_util.h"
#include "transforms/parallel.h"
#include "transforms/plain_prices_test_util.h"
#include "transforms/split_backward.h"
#include "transforms/training_step.h"

// Wherever values lie for a while, a step computes what it computes on one device.

namespace orrery::semantics {
namespace {

using transforms::HostWork;
using transforms::ParallelDegrees;
using transforms::PipelinedStep;
using transforms::SpreadOptions;

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

// Copies that the step has; -1 where it cannot be spread like this.
int64_t ExpectSameStep(const Expected& expected, const ParallelDegrees& d,
                       const SpreadOptions& options, absl::string_view schedule = "1f1b") {
  SCOPED_TRACE(absl::StrCat("dp=", d.dp, " hp=", d.hp, " pp=", d.pp, " K=", d.microbatches, " ",
                            ToString(options.offload), " prefetch=", options.offload.prefetch,
                            " zero=", options.zero.stage, " ", ToString(options.recompute)));
  const auto step = transforms::ParallelTransform3d(expected.step, d, options);
  if (AsInfeasible(step.status()).has_value()) return -1;
  EXPECT_TRUE(step.ok()) << step.status();
  if (!step.ok()) return -1;
  for (const ir::Function& function : step->Functions()) {
    EXPECT_TRUE(ir::Verify(function).ok()) << ir::Verify(function) << ir::Print(function);
  }
  if (testing::Test::HasFailure()) return -1;
  const PipelinedOutcome outcome = RunPipelined(*step, OrdersOf(schedule, *step), expected.inputs);
  ExpectSame(outcome.outputs, expected.outputs, 1e-8);
  EXPECT_LE(outcome.disagreement, 1e-8);
  EXPECT_EQ(outcome.lost, 0);
  if (testing::Test::HasFailure()) ADD_FAILURE() << ir::Print(step->Functions());
  return Count(*step, HostWork::kStore);
}

SpreadOptions With(const char* offload, int64_t prefetch = 1) {
  SpreadOptions options;
  options.offload = transforms::ParseOffloadPolicy(offload).value();
  options.offload.prefetch = prefetch;
  return options;
}

TEST(Offload, OfAnMlpIsTheSame) {
  ir::Function step = ir::Mlp({.layers = 6, .dim = 12, .batch = 36}).value();
  ASSERT_TRUE(transforms::AppendOptimizer(step, "adam").value());
  const Expected expected(std::move(step));
  for (const int64_t pp : {1, 2}) {
    for (const int64_t hp : {1, 2}) {
      for (const int64_t microbatches : {1, 2, 3}) {
        for (const char* policy : kPolicies) {
          const ParallelDegrees degrees = {.hp = hp, .pp = pp, .microbatches = microbatches};
          ASSERT_GT(ExpectSameStep(expected, degrees, With(policy, microbatches - 1)), 0);
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
    for (const ParallelDegrees& degrees : std::vector<ParallelDegrees>{
             {}, {.hp = 2}, {.pp = 2, .microbatches = 3}, {.hp = 2, .pp = 2, .microbatches = 2}}) {
      for (const char* policy : kPolicies) {
        ran += ExpectSameStep(expected, degrees, With(policy)) >= 0 ? 1 : 0;
        ASSERT_FALSE(HasFailure());
      }
    }
  }
  EXPECT_GT(ran, 40);
}

// With what is computed again, and with what data-parallel ranks share out.
TEST(Offload, BesideRecomputationAndZeroIsTheSame) {
  const Expected expected(
      transforms::ModelStep("gpt", "layers=4,hidden=8,heads=2,seq=4,vocab=8,tied_embeddings=0", 8));
  for (const char* recompute : {"none", "selective", "full", "every:2"}) {
    for (const int64_t zero : {0, 1, 2, 3}) {
      for (const char* policy : {"optimizer+activations", "optimizer+activations:."}) {
        SpreadOptions options = With(policy, zero);
        options.recompute = transforms::ParseRecomputePolicy(recompute).value();
        options.zero.stage = zero;
        for (const ParallelDegrees& degrees :
             {ParallelDegrees{.dp = 2, .microbatches = 2},
              ParallelDegrees{.dp = 2, .pp = 2, .microbatches = 2}}) {
          ASSERT_GT(ExpectSameStep(expected, degrees, options), 0);
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
    SpreadOptions options = With(policy);
    options.stages.split_backward = true;
    ASSERT_GT(ExpectSameStep(expected, {.pp = 2, .microbatches = 4}, options, "zb-h1"), 0);
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
      SpreadOptions options = With(policy);
      options.stages.split_backward = split;
      const auto step =
          transforms::ParallelTransform3d(model, {.pp = 2, .microbatches = 2}, options);
      ASSERT_TRUE(step.ok()) << step.status();
      EXPECT_GT(Count(*step, HostWork::kStore), 0);
      EXPECT_EQ(Count(*step, HostWork::kStore), Count(*step, HostWork::kLoad)) << policy;
    }
  }
}

TEST(Offload, OfRandomStepsIsTheSame) {
  int copies = 0;
  for (uint32_t seed = 0; seed < 200; ++seed) {
    SCOPED_TRACE(absl::StrCat("seed=", seed));
    const Expected expected(RandomStep({.seed = seed,
                                        .layers = 1 + static_cast<int>(seed % 6),
                                        .batch = 12,
                                        .width_unit = 12,
                                        .tied = seed % 2 == 0},
                                       seed % 7 == 0 ? "none" : "momentum"));
    SpreadOptions options = With(seed % 3 == 0 ? "optimizer+activations" : "optimizer", seed % 4);
    options.zero.stage = seed / 2 % 4;
    const ParallelDegrees degrees = {.dp = 1 + seed % 3,
                                     .hp = 1 + seed / 3 % 2,
                                     .pp = 1 + seed / 6 % 2,
                                     .microbatches = 1 + seed % 2};
    copies += ExpectSameStep(expected, degrees, options) > 0 ? 1 : 0;
    ASSERT_FALSE(HasFailure());
  }
  EXPECT_GT(copies, 60);
}

}  // namespace
}  // namespace orrery::semantics
