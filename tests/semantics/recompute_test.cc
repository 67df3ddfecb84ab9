#include <gtest/gtest.h>

#include <array>

#include "absl/strings/str_cat.h"
#include "ir/models/mlp.h"
#include "ir/models/model_test_util.h"
#include "ir/text/text.h"
#include "ir/verifier.h"
#include "support/sanitized_test_util.h"
#include "support/status.h"
#include "tests/semantics/compare.h"
#include "tests/semantics/random_step.h"
#include "transforms/parallel.h"
#include "transforms/plan/plan_test_util.h"
#include "transforms/plan/plan_text.h"
#include "transforms/schedules/schedule.h"
#include "transforms/sharding/plain_prices_test_util.h"
#include "transforms/training/split_backward.h"
#include "transforms/training/training_step.h"

// What backward rematerializes is what forward has computed: with every policy, parallelized in any
// way, a step gives the same loss, gradients and weights.

namespace orrery::semantics {
namespace recompute_test_cc {
namespace {

using transforms::ParallelPlan;
using transforms::PipelinedStep;
using transforms::PlanContext;

// An example of each record, and more.
std::vector<std::string> Policies() {
  std::vector<std::string> policies = {"full",
                                       "every:3",
                                       "match:core|ln|norm|a1|up|v[0-9]",
                                       "modules:core_attn,mlp,layernorm",
                                       "modules:moe,layernorm",
                                       "modules:moe_act"};
  for (const transforms::RecomputeRecord* record : transforms::AllRecomputePolicies()) {
    if (record->mark != nullptr) policies.emplace_back(record->example);
  }
  return policies;
}

int64_t SavedValues(const PipelinedStep& step) {
  int64_t saved = 0;
  for (const transforms::PipelineStage& stage : step.stages) {
    for (const ir::Output& output : stage.forward.function.outputs()) {
      saved += output.role == ir::OutputRole::kSaved ? 1 : 0;
    }
  }
  return saved;
}

int64_t SavedBytes(const PipelinedStep& step) {
  int64_t saved = 0;
  for (const transforms::PipelineStage& stage : step.stages) {
    const ir::Function& forward = stage.forward.function;
    for (const ir::Output& output : forward.outputs()) {
      if (output.role != ir::OutputRole::kSaved) continue;
      saved += ir::SizeOf(ir::LocalType(forward.type(output.value), forward.mesh())).count();
    }
  }
  return saved;
}

// Plays `step` with each policy and compares it with `expected`; returns with how many policies
// something is rematerialized.
int ExpectSameWithEachPolicy(const ir::Function& step, ParallelPlan plan, const Named& expected,
                             const PlanContext& context = {}) {
  plan = transforms::ByFlops(plan);
  const auto plain = transforms::ParallelTransform3d(step, plan, context);
  if (AsInfeasible(plain.status()).has_value()) return 0;  // a tied embedding
  EXPECT_TRUE(plain.ok()) << plain.status();
  if (!plain.ok()) return 0;
  const Named inputs = RandomInputs(step, 7);
  int fewer = 0;
  for (const std::string& policy : Policies()) {
    plan.recompute = transforms::ParseRecomputePolicy(policy).value();
    SCOPED_TRACE(ToString(plan));
    const auto again = transforms::ParallelTransform3d(step, plan, context);
    if (absl::IsInvalidArgument(again.status())) continue;  // nothing has such a name
    EXPECT_TRUE(again.ok()) << again.status();
    if (!again.ok()) return fewer;
    for (const ir::Function& function : again->Functions()) {
      EXPECT_TRUE(ir::Verify(function).ok()) << ir::Verify(function);
    }
    const PipelinedOutcome outcome =
        RunPipelined(*again, OrdersOf(plan.schedule->name, *again), inputs);
    ExpectSame(outcome.outputs, expected);
    EXPECT_LE(outcome.disagreement, kTolerance);
    EXPECT_EQ(outcome.lost, 0);
    EXPECT_LE(SavedValues(*again), SavedValues(*plain));
    fewer += SavedValues(*again) < SavedValues(*plain) ? 1 : 0;
    if (testing::Test::HasFailure()) {
      ADD_FAILURE() << ir::Print(again->Functions());
      return fewer;
    }
  }
  return fewer;
}

struct Model {
  absl::string_view family, keys;
};

constexpr Model kModels[] = {
    {"gpt", "layers=4,hidden=8,heads=2,seq=4,vocab=8,tied_embeddings=0"},
    {"gpt", "layers=2,hidden=8,heads=2,seq=4,vocab=8,qkv=packed,flash=1"},
    {"gpt", "layers=3,hidden=16,heads=4,kv_heads=2,seq=4,vocab=8,mlp=swiglu,ffn=16,flash=1"},
    {"gpt", "layers=2,hidden=8,heads=2,seq=4,vocab=8,mlp=swiglu,ffn=6,experts=4,topk=2"},
    {"hybrid",
     "pattern=M*-MEM,hidden=8,heads=2,seq=4,vocab=8,ffn=6,mamba_heads=4,mamba_dim=2,groups=2,state="
     "2,"
     "chunk=2,experts=4,expert_ffn=4,latent=4"},
    {"bert", "layers=2,hidden=8,heads=2,seq=4,vocab=8,classes=4"},
    {"lstm", "layers=2,hidden=12,seq=3,vocab=8"},
    {"resnet", "depth=18,image=32,width=2,classes=4"},
};

constexpr int64_t kBatch = 4;

ir::Function Step(const Model& model, const std::string& optimizer = "momentum") {
  ir::Function function = ir::BuildModel(model.family, model.keys, kBatch);
  const absl::Status status = transforms::MakeTrainingStep(function, {.optimizer = optimizer});
  EXPECT_TRUE(status.ok()) << status;
  return function;
}

TEST(Recompute, OfModelsIsTheSame) {
  for (const Model& model : kModels) {
    SCOPED_TRACE(absl::StrCat(model.family, ":", model.keys));
    const ir::Function step = Step(model);
    const Named expected = RunAll(step, RandomInputs(step, 7)).outputs;
    int fewer = 0;
    for (const ParallelPlan& plan :
         std::vector<ParallelPlan>{{},
                                   {.microbatches = 2},
                                   {.hp = 2},
                                   {.pp = 2, .microbatches = 2},
                                   {.dp = 2, .hp = 2, .pp = 2, .microbatches = 2}}) {
      // Statistics of a batch want it whole.
      if (model.family == "resnet" && plan.microbatches * plan.dp > 1) continue;
      fewer += ExpectSameWithEachPolicy(step, plan, expected);
      if (HasFailure()) return;
    }
    EXPECT_GE(fewer, 3);
  }
}

// Element-wise chains that are fused, of which less is kept: as written, before passes make ops of
// them, and of models.
TEST(Recompute, OfFusedChainsIsTheSame) {
  std::vector<ir::Function> steps;
  for (uint32_t seed = 0; seed < 20; ++seed) {
    steps.push_back(RandomStep({.seed = seed, .layers = 4, .batch = 8}, "momentum"));
  }
  for (const Model& model : kModels) {
    if (model.family != "resnet") steps.push_back(Step(model));
  }
  int64_t fewer = 0;
  for (const ir::Function& step : steps) {
    const Named inputs = RandomInputs(step, 7), expected = RunAll(step, inputs).outputs;
    for (const ParallelPlan& plan : std::vector<ParallelPlan>{
             {.microbatches = 2}, {.dp = 2, .pp = 2, .microbatches = 2}, {.hp = 2}}) {
      SCOPED_TRACE(ToString(plan));
      const ParallelPlan by_flops = transforms::ByFlops(plan);
      const auto plain = transforms::ParallelTransform3d(step, by_flops, {});
      const auto fused = transforms::ParallelTransform3d(step, by_flops, {.fuses_pointwise = true});
      ASSERT_EQ(plain.ok(), fused.ok()) << plain.status() << fused.status();
      if (!plain.ok()) continue;
      for (const ir::Function& function : fused->Functions()) {
        ASSERT_TRUE(ir::Verify(function).ok()) << ir::Verify(function);
      }
      const PipelinedOutcome outcome = RunPipelined(*fused, OrdersOf("1f1b", *fused), inputs);
      ExpectSame(outcome.outputs, expected);
      EXPECT_EQ(outcome.lost, 0);
      EXPECT_LE(SavedBytes(*fused), SavedBytes(*plain));
      fewer += SavedBytes(*fused) < SavedBytes(*plain) ? 1 : 0;
    }
  }
  EXPECT_GE(fewer, 10);
}

TEST(Recompute, OfAnMlpIsTheSame) {
  ir::Function step = ir::Mlp({.layers = 6, .dim = 6, .batch = 12}).value();
  ASSERT_TRUE(transforms::AppendOptimizer(step, "adam").value());
  const Named expected = RunAll(step, RandomInputs(step, 7)).outputs;
  for (const int64_t pp : {1, 2, 3}) {
    for (const int64_t hp : {1, 2}) {
      const ParallelPlan plan = {.dp = 2, .hp = hp, .pp = pp, .microbatches = 3};
      EXPECT_GE(ExpectSameWithEachPolicy(step, plan, expected), 3);
      EXPECT_GE(ExpectSameWithEachPolicy(step, plan, expected, {.recomputes_whole = true}), 3);
    }
  }
}

// Where the residual stream is split along the sequence, and where sequences are: collectives of
// forward are rematerialized.
TEST(Recompute, ShardedByCostIsTheSame) {
  const ir::Function step = Step(kModels[0]), flash = Step(kModels[1]);
  const auto with = [](const ir::Function& of, const ParallelPlan& plan) {
    const Named expected = RunAll(of, RandomInputs(of, 7)).outputs;
    const transforms::PlainPrices prices(transforms::MakeMesh(plan).value(), {});
    for (const bool whole : {false, true}) {
      const PlanContext context = {.prices = &prices, .recomputes_whole = whole};
      EXPECT_GE(ExpectSameWithEachPolicy(of, plan, expected, context), 3);
    }
  };
  with(step, {.hp = 2,
              .pp = 2,
              .microbatches = 2,
              .sequence_parallel = transforms::SequenceParallel::kOn});
  with(step, {.hp = 2, .cp = 2});
  for (const auto attention :
       {transforms::ContextAttention::kRing, transforms::ContextAttention::kAllGather,
        transforms::ContextAttention::kAllToAll}) {
    with(flash, {.cp = 2, .microbatches = 2, .context_attention = attention});
  }
}

// Weights that are gathered are so for what is rematerialized, too.
TEST(Recompute, WithZeroIsTheSame) {
  const ir::Function step = Step(kModels[0]);
  const Named expected = RunAll(step, RandomInputs(step, 7)).outputs;
  for (const int64_t stage : {1, 2, 3}) {
    EXPECT_GE(ExpectSameWithEachPolicy(step, {.dp = 2, .hp = 2, .microbatches = 2, .zero = stage},
                                       expected),
              3);
  }
}

// With several stages a rank, a backward in two parts, and two pipelines.
TEST(Recompute, UnderEveryScheduleIsTheSame) {
  ir::Function whole = Step(kModels[0]), split = whole;
  ASSERT_TRUE(transforms::SplitBackward(split).ok());
  const Named expected = RunAll(whole, RandomInputs(whole, 7)).outputs;
  for (const transforms::PipelineSchedule* schedule : transforms::AllSchedules()) {
    SCOPED_TRACE(schedule->name);
    if (schedule->asynchronous) continue;
    for (const bool splits : {true, false}) {
      const ParallelPlan plan = {
          .pp = 2,
          .microbatches = 4,
          .schedule = transforms::ScheduleChoice::Parse(schedule->name).value()};
      const PlanContext context = {.chunks = schedule->chunks == 0 ? 2 : schedule->chunks,
                                   .placement = schedule->placement,
                                   .split_backward = splits};
      EXPECT_GE(ExpectSameWithEachPolicy(splits ? split : whole, plan, expected, context), 3);
      if (HasFailure()) return;
    }
  }
}

// The same elements are dropped again.
TEST(Recompute, OfDropoutIsTheSame) {
  for (const char* flash : {"0", "1"}) {
    const std::string keys =
        absl::StrCat("layers=2,hidden=8,heads=2,seq=4,vocab=8,dropout=0.5,flash=", flash);
    const ir::Function step = Step({"gpt", keys});
    for (const ParallelPlan& plan :
         std::vector<ParallelPlan>{{}, {.dp = 2, .hp = 2, .microbatches = 2}}) {
      const PipelinedStep plain = transforms::ParallelTransform3d(step, plan).value();
      const Named inputs = RandomInputs(step, 7);
      EXPECT_GE(ExpectSameWithEachPolicy(
                    step, plan, RunPipelined(plain, OrdersOf("1f1b", plain), inputs).outputs),
                3);
    }
  }
}

TEST(Recompute, OfRandomStepsIsTheSame) {
  int fewer = 0;
  for (uint32_t seed = 0; seed < CasesToWalk(120u); ++seed) {
    SCOPED_TRACE(absl::StrCat("seed=", seed));
    const int64_t pp = 1 + seed % 3, hp = 1 + seed / 2 % 2, dp = 1 + seed / 3 % 2,
                  microbatches = 1 + seed / 5 % 3;
    const ir::Function step = RandomStep({.seed = seed,
                                          .layers = static_cast<int>(pp * (1 + seed / 4 % 3)),
                                          .batch = dp * microbatches * 2,
                                          .width_unit = hp},
                                         seed % 2 == 0 ? "none" : "adam");
    fewer +=
        ExpectSameWithEachPolicy(step, {.dp = dp, .hp = hp, .pp = pp, .microbatches = microbatches},
                                 RunAll(step, RandomInputs(step, 7)).outputs);
    if (HasFailure()) FAIL() << ir::Print(step);
  }
  EXPECT_GT(fewer, CasesToWalk(150));
}

}  // namespace
}  // namespace recompute_test_cc
}  // namespace orrery::semantics
