#include "transforms/memory/zero.h"

#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"
#include "ir/models/mlp.h"
#include "ir/op_kind.h"
#include "ir/text/text.h"
#include "ir/verifier.h"
#include "support/sanitized_test_util.h"
#include "support/status.h"
#include "tests/semantics/compare.h"
#include "tests/semantics/random_step.h"
#include "tests/semantics/shard.h"
#include "transforms/memory/recompute.h"
#include "transforms/parallel.h"
#include "transforms/plan/plan_test_util.h"
#include "transforms/plan/plan_text.h"
#include "transforms/schedules/schedule.h"
#include "transforms/sharding/model_step_test_util.h"
#include "transforms/sharding/plain_prices_test_util.h"
#include "transforms/training/split_backward.h"
#include "transforms/training/training_step.h"

// Whoever keeps what, a step computes what it computes on one device.

namespace orrery::semantics {
namespace zero_test_cc {
namespace {

using transforms::ByFlops;
using transforms::ParallelPlan;
using transforms::PlainPrices;
using transforms::PlanContext;

absl::StatusOr<transforms::PipelinedStep> Sharded(const ir::Function& step,
                                                  const ParallelPlan& plan,
                                                  const PlanContext& context = {}) {
  return transforms::ParallelTransform3d(step, ByFlops(plan), context);
}

/// A step, and what it computes on one device.
struct Expected {
  explicit Expected(ir::Function of)
      : step(std::move(of)), inputs(RandomInputs(step, 7)), outputs(RunAll(step, inputs).outputs) {}

  ir::Function step;
  Named inputs, outputs;
};

int64_t Count(const transforms::PipelinedStep& step, ir::OpKind kind) {
  int64_t count = 0;
  for (const ir::Function& function : step.Functions()) {
    for (const ir::OpId op : function.order()) count += function.kind(op) == kind ? 1 : 0;
  }
  return count;
}

/// Plays the step, parallelized by `plan`, and compares. False where it cannot be.
bool ExpectSameStep(const Expected& expected, const ParallelPlan& plan,
                    const PlanContext& context = {}) {
  SCOPED_TRACE(ToString(plan));
  const auto step = Sharded(expected.step, plan, context);
  if (AsInfeasible(step.status()).has_value()) return false;
  EXPECT_TRUE(step.ok()) << step.status();
  if (!step.ok()) return false;
  for (const ir::Function& function : step->Functions()) {
    EXPECT_TRUE(ir::Verify(function).ok()) << ir::Verify(function) << ir::Print(function);
  }
  if (testing::Test::HasFailure()) return false;
  const PipelinedOutcome outcome =
      RunPipelined(*step, OrdersOf(plan.schedule->name, *step), expected.inputs);
  ExpectSame(outcome.outputs, expected.outputs, 1e-8);
  EXPECT_LE(outcome.disagreement, 1e-8);
  EXPECT_EQ(outcome.lost, 0);
  if (testing::Test::HasFailure()) ADD_FAILURE() << ir::Print(step->Functions());
  return !testing::Test::HasFailure();
}

std::vector<ParallelPlan> AllDegrees() {
  std::vector<ParallelPlan> all;
  for (const int64_t dp : {2, 3, 4}) {
    for (const int64_t hp : {1, 2}) {
      for (const int64_t pp : {1, 2}) {
        for (const int64_t microbatches : {1, 2, 3}) {
          all.push_back({.dp = dp, .hp = hp, .pp = pp, .microbatches = microbatches});
        }
      }
    }
  }
  return CasesToWalk(all);
}

TEST(Zero, EveryStageIsTheMlp) {
  for (const char* optimizer : {"sgd", "adam"}) {
    ir::Function step = ir::Mlp({.layers = 4, .dim = 12, .batch = 72}).value();
    ASSERT_TRUE(transforms::AppendOptimizer(step, optimizer).value());
    const Expected expected(std::move(step));
    for (ParallelPlan plan : AllDegrees()) {
      for (const int64_t stage : {1, 2, 3}) {
        plan.zero = stage;
        plan.prefetch = plan.microbatches - 1;
        ASSERT_TRUE(ExpectSameStep(expected, plan));
      }
    }
  }
}

constexpr PlainPrices::Rates kRates[] = {
    {.flops = 1e9, .bytes = 1e12, .link = 1e11, .latency = 1e-9},   // split whatever can be
    {.flops = 1e12, .bytes = 1e11, .link = 1e10, .latency = 1e-8},  // links count
};

// By cost and by Megatron's pattern; how many could be.
int ExpectSameModel(const Expected& expected, const std::vector<ParallelPlan>& all) {
  int ran = 0;
  for (ParallelPlan plan : all) {
    for (const int64_t stage : {1, 2, 3}) {
      plan.zero = stage;
      ran += ExpectSameStep(expected, plan) ? 1 : 0;
      for (const PlainPrices::Rates& rates : kRates) {
        const PlainPrices prices(transforms::MakeMesh(plan).value(), rates);
        ran += ExpectSameStep(expected, plan, {.prices = &prices}) ? 1 : 0;
        if (testing::Test::HasFailure()) return ran;
      }
    }
  }
  return ran;
}

TEST(Zero, TransformersAreTheSame) {
  int ran = 0;
  for (const char* keys : {"layers=2,hidden=8,heads=2,seq=4,vocab=8",
                           "layers=2,hidden=8,heads=2,seq=4,vocab=8,"
                           "tied_embeddings=0,flash=1",
                           "layers=2,hidden=8,heads=4,kv_heads=2,seq=4,vocab=8,"
                           "mlp=swiglu,ffn=8,tied_embeddings=0"}) {
    SCOPED_TRACE(keys);
    const Expected expected(transforms::ModelStep("gpt", keys, 8));
    ran += ExpectSameModel(
        expected, CasesToWalk<ParallelPlan>({{.dp = 4, .hp = 2, .pp = 2, .microbatches = 2},
                                             {.dp = 2, .microbatches = 2},
                                             {.dp = 2, .hp = 2, .microbatches = 1},
                                             {.dp = 2, .hp = 2, .pp = 2, .microbatches = 4}}));
  }
  EXPECT_GT(ran, CasesToWalk(80));
}

// Gradients that are partial over several axes, and experts that are split over some of them.
TEST(Zero, FurtherAxesAreTheSame) {
  int ran = 0;
  for (const char* keys :
       {"layers=2,hidden=16,heads=4,seq=8,vocab=8,tied_embeddings=0,flash=1",
        "layers=2,hidden=8,heads=2,seq=4,vocab=8,mlp=swiglu,ffn=8,experts=4,tied_embeddings=0"}) {
    SCOPED_TRACE(keys);
    const Expected expected(transforms::ModelStep("gpt", keys, 8));
    ran += ExpectSameModel(
        expected, CasesToWalk<ParallelPlan>({{.pp = 2, .cp = 2, .ep = 2, .microbatches = 2},
                                             {.dp = 2, .cp = 2, .microbatches = 2},
                                             {.dp = 2, .ep = 2, .microbatches = 2},
                                             {.dp = 2, .hp = 2, .cp = 2}}));
  }
  EXPECT_GT(ran, CasesToWalk(30));
}

TEST(Zero, OtherModelsAreTheSame) {
  for (const auto& [family, keys] : std::vector<std::pair<const char*, const char*>>{
           {"bert", "layers=2,hidden=8,heads=2,seq=4,vocab=8,classes=4"},
           {"lstm", "layers=2,hidden=4,seq=3,vocab=8"}}) {
    SCOPED_TRACE(keys);
    const Expected expected(transforms::ModelStep(family, keys, 4));
    EXPECT_GT(ExpectSameModel(expected, {{.dp = 2, .microbatches = 2}, {.dp = 4, .hp = 2}}), 10);
  }
}

// Shards among neighbours, copies between groups: one all-reduce more for each gradient, once a
// step.
TEST(Zero, GroupsAreTheSame) {
  ir::Function step = ir::Mlp({.layers = 4, .dim = 8, .batch = 64}).value();
  ASSERT_TRUE(transforms::AppendOptimizer(step, "adam").value());
  const Expected expected(std::move(step));
  for (ParallelPlan plan :
       {ParallelPlan{.dp = 4}, ParallelPlan{.dp = 4, .hp = 2, .microbatches = 2},
        ParallelPlan{.dp = 8, .pp = 2, .microbatches = 2, .order = "dp,hp,pp"}}) {
    for (const int64_t stage : {1, 2, 3}) {
      for (const int64_t group : {2, 4}) {
        plan.zero = stage;
        plan.zero_group = group;
        ASSERT_TRUE(ExpectSameStep(expected, plan));
        const auto pipelined = Sharded(expected.step, plan);
        EXPECT_EQ(Count(*pipelined, ir::OpKind::kReduceScatter), 4);
        EXPECT_EQ(Count(*pipelined, ir::OpKind::kAllReduce) > 0, plan.dp > group || plan.hp > 1);
        EXPECT_EQ(pipelined->mesh.Find("zero").has_value(), plan.dp > group);
      }
    }
  }
}

// Parameters of 16 bits with master copies; and none but the gradients, which come back.
TEST(Zero, MasterCopiesAreTheSame) {
  for (const char* optimizer : {"momentum", "none"}) {
    ir::Function step =
        ir::Mlp({.layers = 2, .dim = 8, .batch = 8, .dtype = ir::DType::kBF16}).value();
    transforms::AppendOptimizer(step, optimizer).value();
    const Expected expected(std::move(step));
    for (const int64_t stage : {1, 2, 3}) {
      for (const int64_t microbatches : {1, 2}) {
        ASSERT_TRUE(ExpectSameStep(
            expected, {.dp = 2, .hp = 2, .microbatches = microbatches, .zero = stage}));
      }
    }
  }
}

TEST(Zero, RandomStepsAreTheSame) {
  int ran = 0;
  for (uint32_t seed = 0; seed < CasesToWalk(300u); ++seed) {
    SCOPED_TRACE(absl::StrCat("seed=", seed));
    const Expected expected(RandomStep({.seed = seed,
                                        .layers = 1 + static_cast<int>(seed % 6),
                                        .batch = 12,
                                        .width_unit = seed % 5 == 0 ? 3 : 12,
                                        .tied = seed % 2 == 0},
                                       seed % 7 == 0 ? "none" : "momentum"));
    const ParallelPlan plan = {.dp = 2 + seed % 3,
                               .hp = 1 + seed / 3 % 2,
                               .pp = 1 + seed / 6 % 2,
                               .microbatches = seed % 4 == 0   ? 1
                                               : seed % 3 == 2 ? 3
                                                               : 2,
                               .zero = 1 + seed / 2 % 3,
                               .prefetch = seed % 4};
    ran += ExpectSameStep(expected, plan) ? 1 : 0;
    if (HasFailure()) FAIL() << ir::Print(expected.step);
  }
  EXPECT_GT(ran, CasesToWalk(100));
}

// Several stages a rank, backwards in two parts, and two pipelines whose stages exchange sums of
// gradients, or shards of them.
TEST(Zero, EveryScheduleIsTheSame) {
  uint32_t seed = 0;
  for (const transforms::PipelineSchedule* schedule : transforms::AllSchedules()) {
    for (int round = 0; round < CasesToWalk(12); ++round, ++seed) {
      const bool two_way = schedule->placement == transforms::StagePlacement::kTwoWay;
      const int64_t pp = two_way ? 2 : 1 + seed % 3;
      const int64_t chunks = schedule->chunks == 0 ? 2 : schedule->chunks;
      const ParallelPlan plan = {
          .dp = 2,
          .hp = 1 + seed / 3 % 2,
          .pp = pp,
          .microbatches = pp * (2 + seed % 3),
          .schedule = transforms::ScheduleChoice::Parse(schedule->name).value(),
          .zero = 1 + seed % 3};
      SCOPED_TRACE(absl::StrCat("seed=", seed, " chunks=", chunks, " ", schedule->name));
      ir::Function step = RandomStep({.seed = seed,
                                      .layers = static_cast<int>(pp * chunks * (1 + seed % 2)),
                                      .batch = 2 * plan.microbatches,
                                      .width_unit = 4,
                                      .tied = seed % 5 == 0},
                                     "momentum");
      const bool split = seed % 4 != 0;
      if (split) transforms::SplitBackward(step).value();
      ASSERT_TRUE(ExpectSameStep(Expected(std::move(step)), plan,
                                 {.chunks = static_cast<int32_t>(chunks),
                                  .placement = schedule->placement,
                                  .split_backward = split}));
    }
  }
}

// What backward rematerializes reads weights that are gathered once for both.
TEST(Zero, RecomputationReadsWhatIsGatheredAnyway) {
  const Expected expected(
      transforms::ModelStep("gpt", "layers=4,hidden=8,heads=2,seq=4,vocab=8,tied_embeddings=0", 8));
  for (const char* text : {"selective", "full", "every:2"}) {
    for (ParallelPlan plan :
         {ParallelPlan{.dp = 2, .microbatches = 2, .zero = 3},
          ParallelPlan{.dp = 2, .hp = 2, .pp = 2, .microbatches = 2, .zero = 3}}) {
      const auto gathers = [&] {
        const auto step = Sharded(expected.step, plan);
        int64_t count = 0;
        for (const transforms::PipelineStage& stage : step->stages) {
          const ir::Function& backward = stage.backward.function;
          for (const ir::OpId op : backward.order()) {
            count += backward.attributes(op).Find("unit") != nullptr &&
                             backward.kind(op) == ir::OpKind::kAllGather
                         ? 1
                         : 0;
          }
        }
        return count;
      };
      const int64_t before = gathers();
      plan.recompute = transforms::ParseRecomputePolicy(text).value();
      ASSERT_TRUE(ExpectSameStep(expected, plan));
      // Biases are read by forward alone.
      EXPECT_GE(gathers(), before);
      EXPECT_LE(gathers(), static_cast<int64_t>(expected.step.inputs().size()));
    }
  }
}

// What two stages make of the gradient of a tied embedding is scattered before they exchange it.
TEST(Zero, TiedEmbeddingsAreScattered) {
  const Expected expected(
      transforms::ModelStep("gpt", "layers=2,hidden=8,heads=2,seq=4,vocab=8", 8));
  for (const int64_t stage : {1, 2, 3}) {
    const ParallelPlan plan = {.dp = 2, .pp = 2, .microbatches = 2, .zero = stage};
    ASSERT_TRUE(ExpectSameStep(expected, plan));
    const auto step = Sharded(expected.step, plan);
    int sent = 0;
    for (const transforms::PipelineStage& of : step->stages) {
      for (const ir::OpId op : of.update.function.order()) {
        if (of.update.function.kind(op) != ir::OpKind::kSend) continue;
        const ir::ValueId value = of.update.function.operands(op)[0];
        EXPECT_EQ(of.update.function.type(value).sharding.split.empty(), stage == 1);
        ++sent;
      }
    }
    EXPECT_EQ(sent, 2);
  }
}

}  // namespace
}  // namespace zero_test_cc
}  // namespace orrery::semantics
