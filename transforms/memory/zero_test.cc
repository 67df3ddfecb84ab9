#include "transforms/memory/zero.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "ir/builder.h"
#include "ir/models/mlp.h"
#include "ir/op_kind.h"
#include "ir/text/text.h"
#include "ir/verifier.h"
#include "support/status.h"
#include "transforms/parallel.h"
#include "transforms/plan/plan_test_util.h"
#include "transforms/sharding/model_step_test_util.h"
#include "transforms/sharding/plain_prices_test_util.h"

// What becomes of types and ops; that it computes the same is in tests/semantics.

namespace orrery::transforms {
namespace zero_test_cc {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

TEST(CheckZero, SaysWhatMakesNoSense) {
  const auto error = [](const ZeroOptions& options) {
    return std::string(CheckZero(options).message());
  };
  EXPECT_EQ(error({.stage = 3, .group = 4, .prefetch = 0}), "");
  EXPECT_EQ(error({.stage = 4}), "ZeRO's stage is 4; wanted 0, 1, 2 or 3");
  EXPECT_EQ(error({.stage = -1}), "ZeRO's stage is -1; wanted 0, 1, 2 or 3");
  EXPECT_EQ(error({.stage = 1, .group = -2}),
            "ZeRO's group is -2 and its prefetch depth 1; wanted none below 0");
  EXPECT_EQ(error({.stage = 3, .prefetch = -2}),
            "ZeRO's group is 0 and its prefetch depth -2; wanted none below 0");
  EXPECT_EQ(error({.group = 4}),
            "a group of 4 ranks, and stage 0 of ZeRO, which shares nothing out; wanted 1, 2 or 3");
}

TEST(PartsHeld, AreOfWhatTheStageShares) {
  const auto parts = [](int64_t stage) {
    const HeldParts held = PartsHeld({.stage = stage}, 4);
    return std::vector<double>{held.parameters, held.gradients, held.states};
  };
  EXPECT_THAT(parts(0), ElementsAre(1, 1, 1));
  EXPECT_THAT(parts(1), ElementsAre(1, 1, 0.25));
  EXPECT_THAT(parts(2), ElementsAre(1, 0.25, 0.25));
  EXPECT_THAT(parts(3), ElementsAre(0.25, 0.25, 0.25));
}

ir::Function Mlp(int64_t dim = 8) {
  ir::Function step =
      ir::Mlp({.layers = 2, .dim = dim, .batch = 24, .dtype = ir::DType::kBF16}).value();
  AppendOptimizer(step, "sgd").value();
  return step;
}

PipelinedStep Sharded(const ir::Function& step, const ParallelPlan& plan,
                      const PlanContext& context = {}) {
  absl::StatusOr<PipelinedStep> pipelined = ParallelTransform3d(step, ByFlops(plan), context);
  EXPECT_TRUE(pipelined.ok()) << pipelined.status();
  for (const ir::Function& function : pipelined->Functions()) {
    EXPECT_TRUE(ir::Verify(function).ok()) << ir::Verify(function);
  }
  return *std::move(pipelined);
}

std::string WhyNot(const ParallelPlan& plan, const PlanContext& context = {}) {
  const auto infeasible = AsInfeasible(ParallelTransform3d(Mlp(), plan, context).status());
  if (!infeasible.has_value()) return "feasible";
  return absl::StrCat(ToString(infeasible->reason), ": ", infeasible->detail);
}

TEST(ApplyZero, SaysWhatIsInfeasible) {
  EXPECT_EQ(WhyNot({.dp = 6, .zero = 2, .zero_group = 4}),
            "divisibility: dp=6 does not divide into groups of 4 ranks that share parameters");
  EXPECT_EQ(WhyNot({.dp = 2, .zero = 1}, {.updates_each_microbatch = true}),
            "unsupported: ZeRO's stage 1 with a schedule that keeps several versions of the "
            "weights; wanted a synchronous one, such as 1f1b");
  EXPECT_EQ(WhyNot({.dp = 2}, {.updates_each_microbatch = true}), "feasible");
  EXPECT_FALSE(ParallelTransform3d(Mlp(), {.dp = 2, .zero = 9}).ok());
}

// One rank has nobody to share with.
TEST(ApplyZero, ChangesNothingWithoutDataParallelism) {
  for (const int64_t stage : {1, 2, 3}) {
    ParallelPlan plan = {.hp = 2, .pp = 2, .microbatches = 2};
    const std::string without = ir::Print(Sharded(Mlp(), plan).Functions());
    plan.zero = stage;
    EXPECT_EQ(ir::Print(Sharded(Mlp(), plan).Functions()), without);
  }
}

// Types of what one stage holds, by role: of inputs that are not data.
std::vector<std::string> Held(const PipelineStage& stage) {
  std::vector<std::string> held;
  for (const StageFunction* part : stage.parts()) {
    for (const ir::Input& input : part->function.inputs()) {
      if (input.role == ir::InputRole::kData || input.role == ir::InputRole::kSaved) continue;
      const std::string row =
          absl::StrCat(ir::ToString(input.role), " ", part->function.value_name(input.value), ": ",
                       ir::ToString(part->function.type(input.value), part->function.mesh()));
      if (std::ranges::find(held, row) == held.end()) held.push_back(row);
    }
  }
  return held;
}

std::vector<std::string> HeldOf(const std::string& name, const ParallelPlan& plan,
                                const ir::Function& step = Mlp()) {
  std::vector<std::string> held;
  for (const std::string& row : Held(Sharded(step, plan).stages[0])) {
    if (absl::StrContains(row, name)) held.push_back(row);
  }
  return held;
}

TEST(ApplyZero, TypesTellWhoHoldsWhat) {
  const auto held = [](int64_t stage) {
    return HeldOf("w0", {.dp = 2, .microbatches = 2, .zero = stage});
  };
  EXPECT_THAT(held(1), ElementsAre("parameter w0: bf16[8,8]",
                                   "accumulator dw0.partial.sum: bf16[8,8] partial(dp)",
                                   "state w0.master: f32[8@dp,8]"));
  EXPECT_THAT(held(2),
              ElementsAre("parameter w0: bf16[8,8]", "accumulator dw0.partial.sum: bf16[8@dp,8]",
                          "state w0.master: f32[8@dp,8]"));
  EXPECT_THAT(held(3),
              ElementsAre("parameter w0: bf16[8@dp,8]", "accumulator dw0.partial.sum: bf16[8@dp,8]",
                          "state w0.master: f32[8@dp,8]"));
}

// Another dimension than the one that hp splits; inside of it where no other divides; uneven parts
// where none does at all.
TEST(ApplyZero, SplitsWhatDivides) {
  EXPECT_THAT(HeldOf("state w1", {.dp = 2, .hp = 2, .zero = 3}),
              ElementsAre("state w1.master: f32[8@hp,8@dp]"));
  EXPECT_THAT(HeldOf("state w0", {.dp = 2, .hp = 2, .zero = 3}),
              ElementsAre("state w0.master: f32[8@dp,8@hp]"));
  EXPECT_THAT(HeldOf("state w0", {.dp = 3, .zero = 3}),
              ElementsAre("state w0.master: f32[8@dp,8]"));
  // Two rows over three ranks: of one each, and none.
  EXPECT_THAT(HeldOf("state w0", {.dp = 3, .zero = 1}, Mlp(2)),
              ElementsAre("state w0.master: f32[2@dp,2]"));
  ir::Function step = Mlp();
  const PipelinedStep uneven = Sharded(step, {.dp = 3, .zero = 3});
  const ir::Function& update = uneven.stages[0].update.function;
  for (const ir::Input& input : update.inputs()) {
    EXPECT_EQ(ir::LocalType(update.type(input.value), update.mesh()).dims[0], 3);
  }
}

TEST(ApplyZero, GroupsShareAndCopiesAreSummedOnceAStep) {
  const PipelinedStep step =
      Sharded(Mlp(), {.dp = 8, .microbatches = 3, .zero = 3, .zero_group = 4});
  EXPECT_EQ(ir::ToString(step.mesh), "mesh(pp=1, dp=2, zero=4, hp=1)");
  EXPECT_THAT(ir::Print(step.stages[0].backward.function),
              HasSubstr("bf16[8@zero,8] partial(dp) = ReduceScatter(%dw0.partial) {axes=\"zero\""));
  EXPECT_THAT(ir::Print(step.stages[0].update.function),
              HasSubstr("%dw0: bf16[8@zero,8] = AllReduce(%dw0.partial.sum) {axes=\"dp\"}"));
  // All of dp is no group.
  EXPECT_EQ(ir::ToString(Sharded(Mlp(), {.dp = 8, .zero = 3, .zero_group = 8}).mesh),
            "mesh(pp=1, dp=8, hp=1)");
}

// Sums over the axes that share are scattered, first; what is left of a sum is one of shards.
TEST(ApplyZero, ScattersBeforeItReducesOverOtherAxes) {
  const ir::Function step =
      ModelStep("gpt", "layers=1,hidden=32,heads=4,seq=32,vocab=32,flash=1", 4);
  ParallelPlan plan = {.dp = 2, .hp = 2, .cp = 2};
  const PlainPrices prices(MakeMesh(plan).value(),
                           {.flops = 1e9, .bytes = 1e12, .link = 1e11, .latency = 1e-9});
  for (const int64_t stage : {1, 2}) {
    plan.zero = stage;
    const PipelinedStep pipelined = Sharded(step, plan, {.prices = &prices});
    int scattered = 0;
    for (const ir::Function& function : pipelined.Functions()) {
      for (const ir::OpId op : function.order()) {
        if (function.kind(op) == ir::OpKind::kReduceScatter) ++scattered;
        if (function.kind(op) != ir::OpKind::kAllReduce) continue;
        const ir::TensorType& type = function.type(function.operands(op)[0]);
        const bool gradient = function.name() == pipelined.stages[0].update.function.name();
        // Vectors that other axes split already are reduced over dp before those scatter them.
        if (!gradient || type.dims.size() == 1) continue;
        EXPECT_TRUE(type.sharding.Uses(*function.mesh().Find("dp"))) << ir::Print(function);
        EXPECT_EQ(function.attributes(op).String("axes", ""), "hp") << ir::Print(function);
      }
    }
    EXPECT_GT(scattered, 10);
  }
}

// Parameters that are not updated are gathered as well; those of one element stay where they are.
TEST(ApplyZero, ForwardAlone) {
  ir::Builder b("forward");
  const ir::ValueId x = b.Data("x", {ir::DType::kF32, {4, 4}, {}});
  const ir::ValueId w = b.Parameter("w", {ir::DType::kF32, {4, 4}, {}});
  const ir::ValueId s = b.Parameter("s", {ir::DType::kF32, {1}, {}});
  b.Return(b.Add(b.MatMul(x, w, "y"), s, "z"));
  const ir::Function forward = std::move(b).Finalize().value();
  EXPECT_EQ(ir::Print(Sharded(forward, {.dp = 2, .zero = 3}).Functions()),
            R"(func @forward.forward0 mesh(pp=1, dp=2, hp=1) (
  %x: f32[4@dp,4] data,
  %w: f32[4@dp,4] parameter,
  %s: f32[1] parameter
) {
  %w.whole: f32[4,4] = AllGather(%w) {axes="dp", dim=0, unit=0}
  %y: f32[4@dp,4] = MatMul(%x, %w.whole)
  %z: f32[4@dp,4] = Add(%y, %s)
  return %z: result
}
)");
}

}  // namespace
}  // namespace zero_test_cc
}  // namespace orrery::transforms
