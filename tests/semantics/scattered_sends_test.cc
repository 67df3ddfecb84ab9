#include <gtest/gtest.h>

#include <vector>

#include "ir/op_kind.h"
#include "ir/text/text.h"
#include "ir/verifier.h"
#include "support/status.h"
#include "tests/semantics/compare.h"
#include "tests/semantics/random_step.h"
#include "transforms/parallel.h"
#include "transforms/plan/plan_test_util.h"
#include "transforms/plan/plan_text.h"
#include "transforms/sharding/model_step_test_util.h"
#include "transforms/sharding/plain_prices_test_util.h"

// Ranks of hp that send to another stage together compute what they did, and send it once.

namespace orrery::semantics {
namespace scattered_sends_test_cc {
namespace {

using transforms::ParallelPlan;
using transforms::PipelinedStep;
using transforms::SequenceParallel;
using transforms::ShardingMethod;

// Bytes that a rank sends to other stages, of a microbatch.
int64_t BytesSent(const PipelinedStep& step) {
  int64_t bytes = 0;
  for (const transforms::PipelineStage& stage : step.stages) {
    for (const transforms::StageFunction* part : {&stage.forward, &stage.backward}) {
      const ir::Function& function = part->function;
      for (const ir::OpId op : function.order()) {
        if (function.kind(op) != ir::OpKind::kSend) continue;
        const ir::TensorType& type = function.type(function.operands(op)[0]);
        bytes += ir::SizeOf(ir::LocalType(type, function.mesh())).count();
      }
    }
  }
  return bytes;
}

PipelinedStep Parallel(const ir::Function& step, const ParallelPlan& plan, bool scatters) {
  const transforms::PlainPrices prices(
      transforms::MakeMesh(plan).value(),
      {.flops = 1e12, .bytes = 1e11, .link = 1e10, .latency = 1e-8});
  return transforms::ParallelTransform3d(step, transforms::ByFlops(plan),
                                         {.prices = plan.by_products() ? nullptr : &prices,
                                          .by_pattern = true,
                                          .scatters_sends = scatters})
      .value();
}

// Returns which share of what was sent still is.
double ExpectSame(const ir::Function& step, const ParallelPlan& plan) {
  SCOPED_TRACE(ToString(plan));
  const Named inputs = RandomInputs(step, 7), expected = RunAll(step, inputs).outputs;
  const PipelinedStep plain = Parallel(step, plan, false), ours = Parallel(step, plan, true);
  for (const ir::Function& function : ours.Functions()) {
    EXPECT_TRUE(ir::Verify(function).ok()) << ir::Verify(function);
  }
  const PipelinedOutcome outcome = RunPipelined(ours, OrdersOf(plan.schedule->name, ours), inputs);
  semantics::ExpectSame(outcome.outputs, expected, 1e-8);
  EXPECT_LE(outcome.disagreement, 1e-8);
  EXPECT_EQ(outcome.lost, 0);
  if (testing::Test::HasFailure()) ADD_FAILURE() << ir::Print(ours.Functions());
  return static_cast<double>(BytesSent(ours)) / static_cast<double>(BytesSent(plain));
}

constexpr char kKeys[] = "layers=4,hidden=8,heads=4,seq=4,vocab=8";

TEST(ScatteredSends, SendWhatIsWholeOnce) {
  const ir::Function step = transforms::ModelStep("gpt", kKeys, 8);
  for (const ParallelPlan& plan :
       {ParallelPlan{.hp = 2, .pp = 2, .microbatches = 2},
        ParallelPlan{.hp = 4, .pp = 4, .microbatches = 4},
        ParallelPlan{.dp = 2, .hp = 2, .pp = 2, .microbatches = 2, .zero = 1}}) {
    ParallelPlan by_pattern = plan;
    by_pattern.sharding = ShardingMethod::kMegatron;
    by_pattern.sequence_parallel = SequenceParallel::kOff;
    EXPECT_DOUBLE_EQ(ExpectSame(step, by_pattern), 1.0 / static_cast<double>(plan.hp));
    by_pattern.recompute = transforms::ParseRecomputePolicy("full").value();
    EXPECT_DOUBLE_EQ(ExpectSame(step, by_pattern), 1.0 / static_cast<double>(plan.hp));
  }
}

// The sequence is in parts already, or there is nobody to share with.
TEST(ScatteredSends, LeavePartsAlone) {
  const ir::Function step = transforms::ModelStep("gpt", kKeys, 8);
  ParallelPlan plan = {.hp = 2, .pp = 2, .microbatches = 2};
  plan.sharding = ShardingMethod::kMegatron;
  plan.sequence_parallel = SequenceParallel::kOn;
  EXPECT_DOUBLE_EQ(ExpectSame(step, plan), 1);
  EXPECT_DOUBLE_EQ(ExpectSame(step, {.dp = 2, .pp = 2, .microbatches = 2}), 1);
}

// Sizes that do not divide travel whole; those of models at random never more than before.
TEST(ScatteredSends, OfRandomModelsAreNoMore) {
  constexpr const char* kModels[] = {
      "layers=4,hidden=6,heads=3,seq=5,vocab=9",
      "layers=4,hidden=12,heads=6,seq=4,vocab=8,mlp=swiglu,tied_embeddings=0",
      "layers=4,hidden=8,heads=4,seq=4,vocab=8,experts=2,topk=1"};
  for (const char* keys : kModels) {
    const ir::Function step = transforms::ModelStep("gpt", keys, 6);
    for (const int64_t hp : {2, 3}) {
      for (const auto sharding : {ShardingMethod::kMegatron, ShardingMethod::kDistir}) {
        const ParallelPlan plan = {.hp = hp, .pp = 2, .microbatches = 3, .sharding = sharding};
        const auto made = transforms::ParallelTransform3d(step, transforms::ByFlops(plan), {});
        if (AsInfeasible(made.status()).has_value()) continue;
        const double share = ExpectSame(step, plan);
        EXPECT_LE(share, 1) << keys << " " << ToString(plan);
      }
    }
  }
}

}  // namespace
}  // namespace scattered_sends_test_cc
}  // namespace orrery::semantics
