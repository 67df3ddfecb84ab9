#include "transforms/stages/stage_choice.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"
#include "ir/models/mlp.h"
#include "support/status.h"
#include "transforms/sharding/model_step_test_util.h"
#include "transforms/stages/choose_stages.h"
#include "transforms/stages/layer_prices.h"
#include "transforms/stages/stage_plan.h"

// Where stages begin, as text: the first named value that forward makes in each.

namespace orrery::transforms {
namespace stage_choice_test_cc {
namespace {

using ::testing::HasSubstr;

std::string BeginsText(const ir::Function& step, int64_t stages, StageChoice choice) {
  const absl::StatusOr<StagePlan> plan =
      PlanStages(step, {.stages = stages, .choice = std::move(choice)});
  if (!plan.ok()) return std::string(plan.status().message());
  const ForwardChain chain = FindChain(step, plan->phase);
  std::string text;
  int32_t last = -1;
  for (const ir::OpId op : chain.ops) {
    const absl::string_view name = step.value_name(step.result(op));
    if (plan->stage[op] <= last || name.empty()) continue;
    absl::StrAppend(&text, text.empty() ? "" : " ", name);
    last = plan->stage[op];
  }
  return text;
}

ir::Function Gpt(absl::string_view more = "") {
  return ModelStep("gpt", absl::StrCat("layers=6,hidden=16,heads=2,seq=8,tied_embeddings=0", more),
                   4);
}

TEST(StageChoice, OfEquallyManyLayers) {
  const ir::Function step = Gpt(",vocab=32");
  const StageChoice layers{.by = StagesBy::kLayers};
  EXPECT_EQ(BeginsText(step, 2, layers), "wte h.3.ln_1");
  EXPECT_EQ(BeginsText(step, 4, layers), "wte h.2.ln_1 h.3.ln_1 h.5.ln_1");
  // More stages than layers: parts of layers, and the classifier, are counted.
  EXPECT_EQ(BeginsText(step, 7, layers), "wte h.1.ln_1 h.2.ln_1 h.3.ln_1 h.4.ln_1 h.5.ln_1 ln_f");
}

// A classifier that takes as long as two layers, about, leaves the last stage with fewer.
TEST(StageChoice, ByCostLeavesTheClassifierFewerLayers) {
  const StageChoice cost{.by = StagesBy::kCost};
  EXPECT_EQ(BeginsText(Gpt(",vocab=32"), 2, cost), "wte h.3.ln_1");
  EXPECT_EQ(BeginsText(Gpt(",vocab=512"), 2, cost), "wte h.4.ln_1");
  EXPECT_EQ(BeginsText(Gpt(",vocab=8192"), 2, cost), "wte ln_f");
}

// Layers are whole, though parts of them would be more even.
TEST(StageChoice, ByCostCutsNoLayerUnlessAsked) {
  const ir::Function step = Gpt(",vocab=32");
  EXPECT_EQ(BeginsText(step, 4, {.by = StagesBy::kCost}), "wte h.1.ln_1 h.3.ln_1 h.5.ln_1");
  EXPECT_THAT(BeginsText(step, 4, {.by = StagesBy::kOps}), HasSubstr("ln_2"));
}

// More stages than there are positions at which little crosses.
TEST(StageChoice, CutsAllProductsWhereItMust) {
  for (const StagesBy by : {StagesBy::kFlops, StagesBy::kLayers, StagesBy::kCost}) {
    const std::string begins = BeginsText(Gpt(",vocab=32"), 16, {.by = by});
    EXPECT_EQ(std::ranges::count(begins, ' '), 15) << begins;
  }
  EXPECT_THAT(BeginsText(Gpt(",vocab=32"), 100, {.by = StagesBy::kCost}),
              HasSubstr("25 matrix products do not cut into 100 stages"));
}

TEST(StageChoice, BeginsWhereNamesMatch) {
  const ir::Function step = Gpt(",vocab=32");
  // At the first of the ops whose names have the same match.
  EXPECT_EQ(BeginsText(step, 3, {.split_at = "h\\.[25]\\."}), "wte h.2.ln_1 h.5.ln_1");
  EXPECT_EQ(BeginsText(step, 3, {.split_at = "h\\.[12]\\."}), "wte h.1.ln_1 h.2.ln_1");
  EXPECT_EQ(BeginsText(step, 2, {.split_at = "h\\.4\\.mlp\\.up$"}), "wte h.4.mlp.up");
  EXPECT_EQ(BeginsText(step, 2, {.split_at = "h\\.[25]\\."}),
            "`split-at` 'h\\.[25]\\.' matches at 2 positions: h.2.ln_1, h.5.ln_1; wanted 1 for 2 "
            "stages");
  EXPECT_EQ(BeginsText(step, 3, {.split_at = "nothing"}),
            "`split-at` 'nothing' matches at 0 positions; wanted 2 for 3 stages");
  EXPECT_THAT(BeginsText(step, 2, {.split_at = "ln_1"}), HasSubstr("matches at 6 positions"));
  EXPECT_THAT(BeginsText(step, 2, {.split_at = "("}), HasSubstr("wanted a regular expression"));
}

TEST(StageChoice, CountsLayers) {
  const ir::Function step = Gpt(",vocab=32");
  EXPECT_EQ(BeginsText(step, 3, {.layers_per_stage = {1, 2, 3}}), "wte h.1.ln_1 h.3.ln_1");
  EXPECT_EQ(BeginsText(step, 3, {.layers_per_stage = {1, 2, 4}}),
            "`layers-per-stage` 1,2,4 adds up to 7 layers; the model has 6");
  EXPECT_EQ(BeginsText(step, 2, {.layers_per_stage = {1, 2, 3}}),
            "`layers-per-stage` 1,2,3 is for 3 stages; wanted 2");
  EXPECT_EQ(BeginsText(step, 3, {.layers_per_stage = {0, 3, 3}}),
            "`layers-per-stage` 0,3,3; wanted at least 1 layer in each stage");
}

// Of layers that are alike every way makes the same stages.
TEST(StageChoice, OfProductsThatAreAllAlike) {
  const ir::Function mlp = ir::Mlp({.layers = 8, .dim = 16, .batch = 4}).value();
  for (const int64_t stages : {2, 3, 4, 5, 8}) {
    const std::string begins = BeginsText(mlp, stages, {.by = StagesBy::kFlops});
    EXPECT_EQ(BeginsText(mlp, stages, {.by = StagesBy::kLayers}), begins);
    EXPECT_EQ(BeginsText(mlp, stages, {.by = StagesBy::kCost}), begins);
  }
}

// With one microbatch all divisions take equally long, and the one that needs least memory is as
// good as any: a classifier's weights are those of two layers, its activations those of one. A
// schedule without orders is none.
TEST(StageChoice, ByCostIsTimedInItsSchedule) {
  ir::Function step =
      ir::BuildModel("gpt", "layers=6,hidden=16,heads=2,seq=8,tied_embeddings=0,vocab=512", 4);
  ASSERT_TRUE(MakeTrainingStep(step, {.optimizer = "none"}).ok());
  const PipelineSchedule& gpipe = *FindSchedule("gpipe").value();
  ScheduledRanks ranks;
  StageChoice cost{.by = StagesBy::kCost, .schedule = &ranks};
  EXPECT_EQ(BeginsText(step, 2, cost), "wte h.4.ln_1");
  cost.in_flight = {4, 1};
  for (const int32_t microbatches : {1, 16}) {
    ranks.shape = gpipe.ShapeOf(2, microbatches);
    ranks.orders = gpipe.orders(ranks.shape);
    EXPECT_EQ(BeginsText(step, 2, cost), microbatches == 1 ? "wte h.1.ln_1" : "wte h.4.ln_1");
  }
}

// The first stage has four microbatches in flight, the last one; there are 6 layers and an end.
TEST(StageChoice, KeepsToMemory) {
  const ir::Function step = Gpt(",vocab=32");
  StageChoice cost{.by = StagesBy::kCost, .in_flight = {4, 3, 2, 1}};
  EXPECT_EQ(BeginsText(step, 4, cost), "wte h.1.ln_1 h.3.ln_1 h.5.ln_1");
  for (const double share : {0.0, 0.9}) {
    cost.memory_share = share;
    EXPECT_EQ(BeginsText(step, 4, cost), "wte h.1.ln_1 h.2.ln_1 h.4.ln_1");
  }
  cost.memory_share = 1;
  EXPECT_EQ(BeginsText(step, 4, cost), "wte h.1.ln_1 h.3.ln_1 h.5.ln_1");
}

// Whoever plays them all takes nothing slower than the last: that must be equally many layers where
// prices have chosen these, too.
TEST(CutsToTry, EndWithEquallyManyLayers) {
  const PipelineSchedule& gpipe = *FindSchedule("gpipe").value();
  int32_t several = 0;
  for (const char* vocab : {",vocab=32", ",vocab=128", ",vocab=512", ",vocab=2048"}) {
    const ir::Function step = Gpt(vocab);
    for (const int32_t microbatches : {1, 4, 16}) {
      ScheduledRanks ranks{.shape = gpipe.ShapeOf(2, microbatches)};
      ranks.orders = gpipe.orders(ranks.shape);
      for (const StagesBy by : {StagesBy::kCost, StagesBy::kOps}) {
        const StageChoice choice{.by = by, .schedule = &ranks, .in_flight = {4, 1}};
        const auto cuts = CutsToTry(step, {.stages = 2, .choice = choice}).value();
        const auto layers =
            CutsToTry(step, {.stages = 2, .choice = {.by = StagesBy::kLayers}}).value();
        EXPECT_EQ(cuts.back(), layers.back()) << vocab << " " << microbatches;
        EXPECT_EQ(std::ranges::count(cuts, cuts.back()), 1);
        several += cuts.size() == 2 ? 1 : 0;
      }
    }
  }
  EXPECT_GT(several, 0);
}

}  // namespace
}  // namespace stage_choice_test_cc
}  // namespace orrery::transforms
