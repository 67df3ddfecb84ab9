#include "search/spaces/weight_strategies.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "ir/models/model_test_util.h"
#include "transforms/plan/plan_text.h"
#include "transforms/training/training_step.h"

namespace orrery::search {
namespace weight_strategies_test_cc {
namespace {

using testing::ElementsAre;
using testing::Field;
using transforms::ParallelPlan;

ir::Function Step(const std::string& family, const std::string& keys) {
  ir::Function step = ir::BuildModel(family, keys, 8);
  EXPECT_TRUE(transforms::MakeTrainingStep(step, {.optimizer = "adam"}).ok());
  return step;
}

TEST(WeightKinds, AreAlikeInAllLayersOrEachByItself) {
  const ir::Function gpt = Step("gpt", "layers=3,hidden=64,heads=4,seq=32,vocab=256,mlp=swiglu");
  const std::vector<WeightKind> kinds = WeightKinds(gpt, StrategyGrain::kKinds);
  const std::vector<WeightKind> weights = WeightKinds(gpt, StrategyGrain::kWeights);
  for (const WeightKind& kind : kinds) EXPECT_EQ(kind.sizes.size(), 2) << kind.pattern;
  const auto of_layers = std::ranges::count_if(kinds, [](const WeightKind& kind) {
    return kind.pattern.find("[0-9]+") != std::string::npos;
  });
  EXPECT_GE(of_layers, 5);
  EXPECT_EQ(std::ssize(weights), std::ssize(kinds) + 2 * of_layers);
  EXPECT_TRUE(std::ranges::is_sorted(kinds, std::ranges::greater(), &WeightKind::elements));
}

TEST(WeightKinds, HaveWhatAllOfTheirsAreMultiplesOf) {
  ir::Function step("step");
  const auto add = [&](const char* name, const ir::Dims& dims, ir::InputRole role) {
    step.AddInput(name, {.dtype = ir::DType::kF32, .dims = dims, .sharding = {}}, role);
  };
  add("stage.0.w", {8, 12}, ir::InputRole::kParameter);
  add("stage.1.w", {12, 12}, ir::InputRole::kFrozen);
  add("stage.0.mixed", {8, 10}, ir::InputRole::kParameter);
  add("stage.1.mixed", {8}, ir::InputRole::kParameter);
  add("stage.0.bias", {8}, ir::InputRole::kParameter);
  add("x0", {8, 8}, ir::InputRole::kData);
  EXPECT_THAT(WeightKinds(step, StrategyGrain::kKinds),
              ElementsAre(WeightKind{"^stage\\.[0-9]+\\.w$", {4, 12}, 8 * 12 + 12 * 12}));
  EXPECT_THAT(WeightKinds(step, StrategyGrain::kWeights),
              ElementsAre(Field(&WeightKind::pattern, "^stage\\.1\\.w$"),
                          Field(&WeightKind::pattern, "^stage\\.0\\.w$"),
                          Field(&WeightKind::pattern, "^stage\\.0\\.mixed$")));
}

// hp = 2 splits a along both, b along its columns; hp = 4 a along both, b along none.
TEST(WeightStrategies, ArePinsOfWhatDivides) {
  PlanList plans;
  plans.Insert({.dp = 4, .hp = 1});
  plans.Insert({.dp = 2, .hp = 2});
  plans.Insert({.dp = 1, .hp = 4});
  plans.Insert({.dp = 1, .hp = 4, .sharding = transforms::ShardingMethod::kMegatron});
  const ChoiceList list(plans, std::make_unique<WeightStrategies>(std::vector<WeightKind>{
                                   {"^a$", {8, 12}, 96}, {"^b$", {3, 2}, 6}}));
  ASSERT_EQ(list.size(), 1 + 4 * 3 + 4 * 2 + 1);
  EXPECT_EQ(list.FeaturesOfThing(1), (std::vector<double>{std::log2(6), std::log2(3), 1}));
  std::vector<std::string> texts;
  for (size_t i = 0; i < list.size(); ++i) {
    const ParallelPlan plan = list[i];
    EXPECT_TRUE(transforms::CheckPlan(plan).ok());
    std::string& text = texts.emplace_back();
    for (const transforms::ShardingPin& pin : plan.pins) text += ToString(pin) + " ";
  }
  EXPECT_EQ(texts[1 + 11], "^a$=hp@1 ^b$=hp@1 ");
  EXPECT_EQ(texts[1 + 12 + 7], "^a$=hp@1 ^b$=hp@whole ");
  EXPECT_EQ(texts.back(), "");
}

TEST(StrategyGrain, IsOneOfTwo) {
  EXPECT_EQ(ParseStrategyGrain("kinds").value(), StrategyGrain::kKinds);
  EXPECT_EQ(ParseStrategyGrain("weights").value(), StrategyGrain::kWeights);
  EXPECT_EQ(ParseStrategyGrain("ops").status().message(), "'ops': wanted kinds or weights");
}

}  // namespace
}  // namespace weight_strategies_test_cc
}  // namespace orrery::search
