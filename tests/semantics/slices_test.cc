#include "transforms/slices/slices.h"

#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"
#include "ir/models/model_test_util.h"
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
#include "transforms/sharding/plain_prices_test_util.h"
#include "transforms/training/training_step.h"

// Slices of the sequence, one after the other, compute what the whole sequence does at once: loss,
// gradients, updated weights.

namespace orrery::semantics {
namespace slices_test_cc {
namespace {

using transforms::ParallelPlan;
using transforms::PlanContext;
using transforms::SliceRange;

// Learned positions that are added; grouped heads, and positions that are angles.
constexpr absl::string_view kModels[] = {
    "layers=2,hidden=8,heads=2,seq=8,vocab=8",
    "layers=2,hidden=8,heads=2,seq=8,vocab=8,qkv=packed,flash=1,tied_embeddings=0",
    "layers=2,hidden=16,heads=4,kv_heads=2,seq=8,vocab=8,mlp=swiglu,ffn=16",
    "layers=2,hidden=16,heads=4,kv_heads=2,seq=8,vocab=8,mlp=swiglu,ffn=16,flash=1,norm=layer"};

ir::Function Step(absl::string_view keys, const std::string& optimizer, int64_t batch) {
  ir::Function function = ir::BuildModel("gpt", keys, batch);
  const absl::Status status = transforms::MakeTrainingStep(function, {.optimizer = optimizer});
  EXPECT_TRUE(status.ok()) << status;
  return function;
}

void ExpectVerified(const transforms::PipelinedStep& step) {
  for (size_t s = 0; s < step.stages.size(); ++s) {
    for (int64_t slice = 0; slice < step.microbatches; ++slice) {
      const transforms::PipelinedStep::Parts parts = step.PartsOf(s, slice);
      for (const transforms::StageFunction* part : {&parts.forward, &parts.backward}) {
        EXPECT_TRUE(ir::Verify(part->function).ok()) << ir::Verify(part->function);
      }
    }
  }
}

// Plays the step in slices and compares it with one device.
void ExpectSlicedSame(const ir::Function& step, const ParallelPlan& plan,
                      const PlanContext& context) {
  SCOPED_TRACE(ToString(plan));
  const auto sliced = transforms::ParallelTransform3d(step, transforms::ByFlops(plan), context);
  ASSERT_TRUE(sliced.ok()) << sliced.status();
  ASSERT_EQ(sliced->slices.size(), context.slices.size());
  ExpectVerified(*sliced);
  const Named inputs = RandomInputs(step, 7);
  const PipelinedOutcome outcome = RunPipelined(*sliced, OrdersOf("terapipe", *sliced), inputs);
  ExpectSame(outcome.outputs, RunAll(step, inputs).outputs);
  EXPECT_LE(outcome.disagreement, kTolerance);
  EXPECT_EQ(outcome.lost, 0);
}

TEST(Slices, AreTheWholeSequence) {
  for (const absl::string_view model : kModels) {
    SCOPED_TRACE(model);
    for (const int64_t batch : {1, 4}) {
      const ir::Function step = Step(model, batch == 1 ? "sgd" : "adam", batch);
      for (const int64_t slices : CasesToWalk({4, 1, 2, 8})) {
        const PlanContext context = {.slices = transforms::EqualSlices(step, slices).value()};
        for (const int64_t pp : {1, 2}) {
          ExpectSlicedSame(step, {.pp = pp, .microbatches = slices}, context);
          if (batch == 1) continue;
          ExpectSlicedSame(step, {.dp = 2, .hp = 2, .pp = pp, .microbatches = slices}, context);
        }
      }
    }
  }
}

TEST(Slices, MayBeOfUnequalLength) {
  const std::vector<SliceRange> slices = {{0, 3}, {3, 2}, {5, 2}, {7, 1}};
  for (const absl::string_view model : kModels) {
    SCOPED_TRACE(model);
    ExpectSlicedSame(Step(model, "momentum", 2), {.dp = 2, .pp = 2, .microbatches = 4},
                     {.slices = slices});
  }
}

TEST(Slices, AreTheSameWithRecomputationAndZero) {
  for (const absl::string_view model : kModels) {
    SCOPED_TRACE(model);
    const ir::Function step = Step(model, "adam", 4);
    const PlanContext context = {.slices = transforms::EqualSlices(step, 4).value()};
    for (const std::string recompute : {"selective", "full", "every:2"}) {
      for (const int64_t zero : CasesToWalk({3, 0, 1, 2})) {
        const auto policy = transforms::ParseRecomputePolicy(recompute).value();
        ExpectSlicedSame(
            step, {.dp = 2, .hp = 2, .pp = 2, .microbatches = 4, .zero = zero, .recompute = policy},
            context);
      }
    }
  }
}

// A stage that begins between keys and their attention keeps those of earlier slices.
TEST(Slices, AreTheSameWhereAttentionIsCut) {
  for (const absl::string_view model : kModels) {
    SCOPED_TRACE(model);
    ExpectSlicedSame(Step(model, "adam", 2),
                     {.pp = 2, .microbatches = 4, .split_at = R"(\.1\.attn\.core)"},
                     {.slices = {{0, 3}, {3, 2}, {5, 2}, {7, 1}}});
  }
}

// By cost, and with activations in parts between the products, as Megatron's sequence parallelism
// has them.
TEST(Slices, AreTheSameHoweverSharded) {
  for (const absl::string_view model : kModels) {
    SCOPED_TRACE(model);
    const ir::Function step = Step(model, "adam", 4);
    ParallelPlan plan = {.dp = 2, .hp = 2, .pp = 2, .microbatches = 4};
    const ir::Mesh mesh = transforms::MakeMesh(plan).value();
    const transforms::PlainPrices prices(
        mesh, {.flops = 1e12, .bytes = 1e11, .link = 1e10, .latency = 1e-8});
    const PlanContext context = {.prices = &prices,
                                 .slices = transforms::EqualSlices(step, 4).value()};
    for (const auto sequence_parallel :
         {transforms::SequenceParallel::kAuto, transforms::SequenceParallel::kOn}) {
      plan.sequence_parallel = sequence_parallel;
      ExpectSlicedSame(step, plan, context);
    }
  }
}

}  // namespace
}  // namespace slices_test_cc
}  // namespace orrery::semantics
