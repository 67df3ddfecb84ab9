#include "tools/validation/rows/mixture_recipe.h"

#include <gtest/gtest.h>

#include <string>

#include "tools/validation/rows/measured_row_test_util.h"
#include "tools/validation/rows/step_setup.h"

namespace orrery::tools {
namespace mixture_recipe_test_cc {
namespace {

MeasuredStep Summary(const std::string& model, const std::string& device) {
  MeasuredStep row = MeasuredRow();
  row.id = "mbridge-26.04-a-row";
  row.model.name = model;
  row.device = device;
  return row;
}

TEST(MixtureRecipe, IsWhatTheRowSays) {
  MeasuredStep row = MeasuredRow();
  EXPECT_FALSE(MixtureRecipeOf(row).sends_tokens_once);
  EXPECT_FALSE(MixtureRecipeOf(row).overlaps_experts);
  row.options = "flex dispatcher + hybridep, cuda graphs on router";
  row.overlap = "no ep overlap";
  EXPECT_TRUE(MixtureRecipeOf(row).sends_tokens_once);
  EXPECT_FALSE(MixtureRecipeOf(row).overlaps_experts);
  row.overlap = "ep overlap, repeat run";
  EXPECT_TRUE(MixtureRecipeOf(row).overlaps_experts);
  row.options = R"({"kernels":"te + deepep"})";
  EXPECT_TRUE(MixtureRecipeOf(row).sends_tokens_once);
}

TEST(MixtureRecipe, OfTheSummaryIsOfModelAndDevice) {
  EXPECT_TRUE(MixtureRecipeOf(Summary("DeepSeekV3", "B200-180GB")).overlaps_experts);
  EXPECT_FALSE(MixtureRecipeOf(Summary("DeepSeekV3", "GB200-186GB")).overlaps_experts);
  EXPECT_FALSE(MixtureRecipeOf(Summary("Qwen3_235B_a22B", "B200-180GB")).sends_tokens_once);
  EXPECT_TRUE(MixtureRecipeOf(Summary("Qwen3_235B_a22B", "GB300-288GB")).sends_tokens_once);
  EXPECT_FALSE(MixtureRecipeOf(Summary("LLAMA3_70B", "B200-180GB")).sends_tokens_once);
  MeasuredStep other = Summary("DeepSeekV3", "B200-180GB");
  other.id = "another-row";
  EXPECT_FALSE(MixtureRecipeOf(other).overlaps_experts);
}

// A recipe recomputes where the row does not say.
TEST(MixtureRecipe, RecomputesModules) {
  MeasuredStep row = Summary("GPT OSS 120B", "B200-180GB");
  const auto policy = [&] { return ToString(SetupOf(row).value().plan.recompute); };
  const std::string of_recipe = policy();
  row.recompute = "none";
  EXPECT_NE(policy(), of_recipe);
}

}  // namespace
}  // namespace mixture_recipe_test_cc
}  // namespace orrery::tools
