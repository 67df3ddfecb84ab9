#include "transforms/stages/stage_plan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "ir/models/mlp.h"
#include "ir/op_info.h"
#include "ir/op_kind.h"
#include "ir/optimizer_operands.h"
#include "ir/text/text.h"
#include "support/status.h"
#include "transforms/sharding/model_step_test_util.h"
#include "transforms/stages/shared_parameters.h"

// Where ops go, as a table: each op by its first result, with its phase and stage.

namespace orrery::transforms {
namespace stage_plan_test_cc {
namespace {

constexpr absl::string_view kPhases[] = {"forward", "backward", "weights", "update"};

std::string PlanText(const ir::Function& function, int64_t stages) {
  const absl::StatusOr<StagePlan> plan = PlanStages(function, {.stages = stages});
  if (!plan.ok()) return std::string(plan.status().message());
  std::string text;
  for (const ir::OpId op : function.order()) {
    absl::StrAppend(&text, text.empty() ? "" : "\n", function.value_name(function.result(op)), " ",
                    kPhases[static_cast<size_t>(plan->phase[op])], plan->stage[op]);
  }
  return text;
}

constexpr char kStep[] = R"(func @step mesh(dp=2) (
  %x: f32[8@dp,4] data,
  %z: f32[8@dp,4] data,
  %w0: f32[4,4] parameter,
  %b0: f32[4] parameter,
  %w1: f32[4,4] parameter
) {
  %w1t: f32[4,4] = Transpose(%w1)
  %y0: f32[8@dp,4] = MatMul(%x, %w0)
  %s0: f32[8@dp,4] = Add(%y0, %b0)
  %y1: f32[8@dp,4] = MatMul(%s0, %w1t)
  %r1: f32[8@dp,4] = Add(%s0, %y1)
  %l: f32[8@dp,4] = Loss(%r1, %z) {batch=8}
  %dr1: f32[8@dp,4] = LossGrad(%r1, %z) {batch=8}
  %ds0: f32[8@dp,4], %dw1t: f32[4,4] partial(dp) = MatMulGrad(%s0, %w1t, %dr1)
  %dw1.partial: f32[4,4] partial(dp) = Transpose(%dw1t)
  %sum: f32[8@dp,4] = Add(%dr1, %ds0)
  %db0.partial: f32[4] partial(dp) = ReduceSum(%sum) {axes=[0]}
  %dw0.partial: f32[4,4] partial(dp) = MatMul(%x, %sum) {transpose_x=1}
  %dw1: f32[4,4] = AllReduce(%dw1.partial) {axes="dp"}
  %db0: f32[4] = AllReduce(%db0.partial) {axes="dp"}
  %dw0: f32[4,4] = AllReduce(%dw0.partial) {axes="dp"}
  %w1': f32[4,4], %b0': f32[4], %w0': f32[4,4] = Sgd(%w1, %b0, %w0, %dw1, %db0, %dw0) {parameters=3}
  return %l: loss, %w1': updated(%w1), %b0': updated(%b0), %w0': updated(%w0)
}
)";

// Stages of the forward products of layers that are all alike, in their order.
std::string StagesOfLayers(int64_t layers, int64_t stages) {
  const ir::Function mlp = ir::Mlp({.layers = layers, .dim = 4, .batch = 4}).value();
  const absl::StatusOr<StagePlan> plan = PlanStages(mlp, {.stages = stages});
  if (!plan.ok()) return std::string(plan.status().message());
  std::string text;
  for (const ir::OpId op : mlp.order()) {
    const bool layer =
        mlp.kind(op) == ir::OpKind::kMatMul && plan->phase[op] == StepPhase::kForward;
    if (layer) absl::StrAppend(&text, plan->stage[op]);
  }
  return text;
}

TEST(PlanStages, OfLayersThatAreAlikeAreOfNearlyOneLength) {
  EXPECT_EQ(StagesOfLayers(6, 3), "001122");
  EXPECT_EQ(StagesOfLayers(7, 3), "0001122");
  EXPECT_EQ(StagesOfLayers(8, 3), "00011122");
  EXPECT_EQ(StagesOfLayers(10, 4), "0001122233");
  EXPECT_EQ(StagesOfLayers(3, 3), "012");
  EXPECT_EQ(StagesOfLayers(3, 4), "3 layers are too few for 4 stages");
}

// The loss and its gradient are forward: they need nothing that backward makes. A weight that is
// transposed goes with its product; the gradient of a bias to the bias; an optimizer is split
// later.
TEST(PlanStages, OfAStepInTwoStages) {
  EXPECT_EQ(PlanText(ir::ParseFunction(kStep).value(), 2), R"(w1t forward1
y0 forward0
s0 forward0
y1 forward1
r1 forward1
l forward1
dr1 forward1
ds0 backward1
dw1.partial backward1
sum backward1
db0.partial backward0
dw0.partial backward0
dw1 update1
db0 update0
dw0 update0
w1' update0)");
}

TEST(PlanStages, SaysWhatDoesNotDivide) {
  EXPECT_EQ(PlanText(ir::ParseFunction(kStep).value(), 3), "2 layers are too few for 3 stages");
}

// The gradient of %g reads %f, which crosses to the second stage: it is made there, where %w1 is.
TEST(PlanStages, MakesGradientsNoEarlierThanTheyAreRead) {
  EXPECT_EQ(PlanText(ir::ParseFunction(R"(func @gate (
  %x: f32[8,4] data,
  %z: f32[8,4] data,
  %w0: f32[4,4] parameter,
  %w1: f32[4,4] parameter
) {
  %f: f32[8,4] = MatMul(%x, %w0)
  %g: f32[8,4] = MatMul(%z, %w1)
  %y: f32[8,4] = Mul(%f, %g)
  %l: f32[8,4] = Loss(%y, %z) {batch=8}
  %dy: f32[8,4] = LossGrad(%y, %z) {batch=8}
  %df: f32[8,4] = Mul(%dy, %g)
  %dg: f32[8,4] = Mul(%dy, %f)
  %dg.view: f32[8,4] = Reshape(%dg) {shape=[-1, 4]}
  %dw1: f32[4,4] = MatMul(%z, %dg.view) {transpose_x=1}
  %dw0: f32[4,4] = MatMul(%x, %df) {transpose_x=1}
  return %l: loss, %dw0: gradient(%w0), %dw1: gradient(%w1)
}
)")
                         .value(),
                     2),
            "f forward0\ng forward1\ny forward1\nl forward1\ndy forward1\ndf backward1\n"
            "dg backward1\ndg.view backward1\ndw1 backward1\ndw0 backward0");
}

// Forward reads the second result of %v alone: it is behind the cut all the same.
TEST(PlanStages, CutsBeforeAnOpOfWhichTheSecondResultIsRead) {
  const ir::Function step = ir::ParseFunction(R"(func @route (
  %x: f32[8,4] data,
  %z: f32[8,1] data,
  %w0: f32[4,4] parameter,
  %w1: f32[1,1] parameter
) {
  %f: f32[8,4] = MatMul(%x, %w0)
  %v: f32[8,1], %i: i64[8,1] = TopK(%f) {axis=1, k=1, largest=1, sorted=1}
  %c: f32[8,1] = Cast(%i) {to="f32"}
  %y: f32[8,1] = MatMul(%c, %w1)
  %l: f32[8,1] = Loss(%y, %z) {batch=8}
  %dy: f32[8,1] = LossGrad(%y, %z) {batch=8}
  %dw1: f32[1,1] = MatMul(%c, %dy) {transpose_x=1}
  return %l: loss, %dw1: gradient(%w1)
}
)")
                                .value();
  const auto plan = PlanStages(step, {.stages = 2, .choice = {.split_at = "^v$"}});
  ASSERT_TRUE(plan.ok()) << plan.status();
  EXPECT_EQ(plan->stage[step.order()[0]], 0);
  EXPECT_EQ(plan->stage[step.order()[1]], 1);
}

// Where the maxima were, which only backward reads, is looked up on the stage that has them.
TEST(PlanStages, MakesWhatBackwardReadsWhereItStands) {
  EXPECT_EQ(PlanText(ir::ParseFunction(R"(func @maxima (
  %x: f32[8,4] data,
  %z: f32[8,4] data,
  %w0: f32[4,4] parameter,
  %w1: f32[4,4] parameter
) {
  %h: f32[8,4] = MatMul(%x, %w0)
  %max: f32[8,1] = ReduceMax(%h) {axes=[1], keepdims=1}
  %s: f32[8,4] = Sub(%h, %max)
  %y: f32[8,4] = MatMul(%s, %w1)
  %l: f32[8,4] = Loss(%y, %z) {batch=8}
  %dy: f32[8,4] = LossGrad(%y, %z) {batch=8}
  %where: bool[8,4] = Equal(%h, %max)
  %ds: f32[8,4], %dw1: f32[4,4] = MatMulGrad(%s, %w1, %dy)
  %none: f32[] = Constant() {fill=0.0}
  %dh: f32[8,4] = Where(%where, %ds, %none)
  %dw0: f32[4,4] = MatMul(%x, %dh) {transpose_x=1}
  return %l: loss, %dw0: gradient(%w0), %dw1: gradient(%w1)
}
)")
                         .value(),
                     2),
            "h forward0\nmax forward0\ns forward0\ny forward1\nl forward1\ndy forward1\n"
            "where forward0\nds backward1\nnone forward1\ndh backward0\ndw0 backward0");
}

TEST(PlanStages, HousesParameters) {
  const ir::Function function = ir::ParseFunction(kStep).value();
  const StagePlan plan = PlanStages(function, {.stages = 2}).value();
  std::string homes;
  for (const ir::Input& input : function.inputs()) {
    if (input.role != ir::InputRole::kParameter) continue;
    absl::StrAppend(&homes, function.value_name(input.value), " ", plan.home[input.value], " ");
  }
  EXPECT_EQ(homes, "w0 0 b0 0 w1 1 ");
}

// A weight of both layers: each stage makes a part of its gradient, and both put them together.
constexpr char kTied[] = R"(func @tied mesh(dp=2) (
  %x: f32[8@dp,4] data,
  %z: f32[8@dp,4] data,
  %w: f32[4,4] parameter
) {
  %y0: f32[8@dp,4] = MatMul(%x, %w)
  %y1: f32[8@dp,4] = MatMul(%y0, %w)
  %l: f32[8@dp,4] = Loss(%y1, %z) {batch=8}
  %dy1: f32[8@dp,4] = LossGrad(%y1, %z) {batch=8}
  %dy0: f32[8@dp,4], %dw.1: f32[4,4] partial(dp) = MatMulGrad(%y0, %w, %dy1)
  %dw.0: f32[4,4] partial(dp) = MatMul(%x, %dy0) {transpose_x=1}
  %dw.sum: f32[4,4] partial(dp) = Add(%dw.1, %dw.0)
  %dw: f32[4,4] = AllReduce(%dw.sum) {axes="dp"}
  %w': f32[4,4] = Sgd(%w, %dw) {parameters=1}
  return %l: loss, %w': updated(%w)
}
)";

TEST(PlanStages, GivesEachStageThatReadsAWeightACopy) {
  const ir::Function function = ir::ParseFunction(kTied).value();
  EXPECT_EQ(PlanText(function, 2),
            "y0 forward0\ny1 forward1\nl forward1\ndy1 forward1\ndy0 backward1\n"
            "dw.0 backward0\ndw.sum update1\ndw update1\nw' update0");
  const StagePlan plan = PlanStages(function, {.stages = 2}).value();
  const ir::ValueId weight = function.inputs()[2].value;
  EXPECT_THAT(plan.copies.at(weight), testing::ElementsAre(0, 1));
  EXPECT_TRUE(plan.Holds(0, weight) && plan.Holds(1, weight));
  ASSERT_EQ(plan.runs_on.size(), 2);
  for (const auto& [op, stages] : plan.runs_on) EXPECT_THAT(stages, testing::ElementsAre(0, 1));
}

TEST(PlanStages, PutsAGradientOfThreeStagesTogetherOnTheLast) {
  std::string text = kTied;
  const auto insert = [&](const char* before, const char* line) {
    text.insert(text.find(before), line);
  };
  insert("  %l:", "  %y2: f32[8@dp,4] = MatMul(%y1, %w)\n");
  absl::StrReplaceAll({{"Loss(%y1", "Loss(%y2"},
                       {"LossGrad(%y1", "LossGrad(%y2"},
                       {"%dy1: f32[8@dp,4] =", "%dy2: f32[8@dp,4] ="},
                       {"Add(%dw.1, %dw.0)", "Add(%dw.12, %dw.0)"}},
                      &text);
  insert("  %dy0:",
         "  %dy1: f32[8@dp,4], %dw.2: f32[4,4] partial(dp) = MatMulGrad(%y1, %w, %dy2)\n");
  insert("  %dw.sum:", "  %dw.12: f32[4,4] partial(dp) = Add(%dw.2, %dw.1)\n");
  const ir::Function function = ir::ParseFunction(text).value();
  const StagePlan plan = PlanStages(function, {.stages = 3}).value();
  ASSERT_EQ(plan.runs_on.size(), 3);
  for (const auto& [op, stages] : plan.runs_on) EXPECT_THAT(stages, testing::ElementsAre(2));
}

// What the last stage cannot update before the first has sent its part is apart there, and only if
// that is asked for.
TEST(UpdatesOf, HasTheLastCopyApart) {
  const ir::Function step = ModelStep("gpt", "layers=2,hidden=8,heads=2,seq=4,vocab=32", 4);
  StagePlan plan = PlanStages(step, {.stages = 2}).value();
  const ir::OpId optimizer = *std::ranges::find_if(
      step.order(), [&](ir::OpId op) { return step.info(op).op_class == ir::OpClass::kOptimizer; });
  const auto parameters = ir::OptimizerOperands(step, optimizer).parameters();
  const auto counts = [&] {
    std::vector<std::vector<size_t>> counts;
    for (const int32_t stage : {0, 1}) {
      counts.emplace_back();
      for (const auto& update : UpdatesOf(plan, stage, parameters)) {
        counts.back().push_back(update.size());
      }
    }
    return counts;
  };
  const auto together = counts();
  ASSERT_EQ(together[1].size(), 1u);
  plan.late_updates = true;
  const auto apart = counts();
  EXPECT_EQ(apart[0], together[0]);
  EXPECT_THAT(apart[1], testing::ElementsAre(together[1][0] - 1, 1));
  const size_t late = UpdatesOf(plan, 1, parameters)[1][0];
  EXPECT_EQ(step.value_name(parameters[late]), "wte.weight");
}

// An all-reduce is an update where only the optimizer or the caller wants its result, backward
// where a gradient goes on, forward where an activation does.
TEST(FindPhases, OfCollectives) {
  const ir::Function function = ir::ParseFunction(R"(func @f mesh(hp=2) (
  %x: f32[8,4@hp] data,
  %z: f32[8,4] data,
  %w: f32[4@hp,4] parameter
) {
  %y.partial: f32[8,4] partial(hp) = MatMul(%x, %w)
  %y: f32[8,4] = AllReduce(%y.partial) {axes="hp"}
  %l: f32[8,4] = Loss(%y, %z) {batch=8}
  %dy: f32[8,4] = LossGrad(%y, %z) {batch=8}
  %x.whole: f32[8,4] = AllGather(%x) {axes="hp", dim=1}
  %w.whole: f32[4,4] = AllGather(%w) {axes="hp", dim=0}
  %dx: f32[8,4], %dw: f32[4,4] = MatMulGrad(%x.whole, %w.whole, %dy)
  %dw.part: f32[4@hp,4] = AllSlice(%dw) {axes="hp", dim=0}
  %dw.whole: f32[4,4] = AllGather(%dw.part) {axes="hp", dim=0}
  return %l: loss, %dx: result, %dw.whole: gradient(%w)
}
)")
                                    .value();
  const auto phases = FindPhases(function);
  std::string text;
  for (const ir::OpId op : function.order()) {
    absl::StrAppend(&text, function.value_name(function.result(op)), " ",
                    kPhases[static_cast<size_t>(phases[op])], "\n");
  }
  EXPECT_EQ(text, R"(y.partial forward
y forward
l forward
dy forward
x.whole backward
w.whole backward
dx backward
dw.part backward
dw.whole update
)");
}

}  // namespace
}  // namespace stage_plan_test_cc
}  // namespace orrery::transforms
