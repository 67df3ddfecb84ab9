#include "transforms/sharding/shard_plan.h"

#include <gtest/gtest.h>

#include <string>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "transforms/sharding/model_step_test_util.h"

namespace orrery::transforms {
namespace shard_plan_test_cc {
namespace {

// "wte.weight 0 h.0.attn.k.weight 1?": what is split of the weights with two dimensions or more, a
// question mark where that is open.
std::string Show(absl::string_view keys, int64_t parts, PatternScope scope) {
  const ir::Function step = ModelStep("gpt", keys, 2);
  const auto splits = PlanTensorSplits(step, parts, scope);
  EXPECT_TRUE(splits.ok()) << splits.status();
  std::string text;
  for (const ir::Input& input : step.inputs()) {
    const bool weight = input.role == ir::InputRole::kParameter;
    if (!weight || step.type(input.value).dims.size() < 2) continue;
    absl::StrAppend(&text, step.value_name(input.value), " ",
                    static_cast<int>(splits->dims[input.value]),
                    splits->open[input.value] != 0 ? "?" : "", "\n");
  }
  return text;
}

constexpr char kGpt[] = "layers=1,hidden=16,heads=8,kv_heads=2,seq=4,vocab=12,tied_embeddings=0,";

TEST(PlanTensorSplits, OfLayersHasTablesByRows) {
  EXPECT_EQ(Show(absl::StrCat(kGpt, "position=learned"), 2, PatternScope::kLayers),
            "wte.weight 0\nwpe.weight -1\nh.0.attn.q.weight 1\nh.0.attn.k.weight 1\n"
            "h.0.attn.v.weight 1\nh.0.attn.proj.weight 0\nh.0.mlp.up.weight 1\n"
            "h.0.mlp.down.weight 0\nlm_head.weight 1\n");
  const std::string products =
      Show(absl::StrCat(kGpt, "position=learned"), 2, PatternScope::kColumnsAndRows);
  EXPECT_TRUE(absl::StartsWith(products, "wte.weight -1\n")) << products;
  // A vocabulary that does not divide.
  EXPECT_TRUE(
      absl::StartsWith(Show("layers=1,hidden=16,heads=8,seq=4,vocab=13,", 2, PatternScope::kLayers),
                       "wte.weight -1\n"));
}

// Two heads of keys over four ranks, and a router, whose choice wants all of its columns.
TEST(PlanTensorSplits, OfLayersLeavesOpenWhatNobodyTakes) {
  const std::string text = Show(absl::StrCat(kGpt, "experts=4,topk=1"), 4, PatternScope::kLayers);
  EXPECT_TRUE(absl::StrContains(text, "h.0.moe.router.weight 1?\n")) << text;
  EXPECT_TRUE(absl::StrContains(text, "h.0.moe.up.weight 2\n")) << text;
  EXPECT_TRUE(absl::StrContains(text, "h.0.moe.down.weight 1\n")) << text;
  EXPECT_TRUE(absl::StrContains(text, "h.0.attn.proj.weight 0\n")) << text;
  EXPECT_TRUE(absl::StrContains(
      Show(absl::StrCat(kGpt, "experts=4,topk=1"), 4, PatternScope::kColumnsAndRows),
      "h.0.moe.router.weight 1\n"));
}

// Frozen weights lie as trained ones do, in all layers. Of their pairs, what a row of W is split by
// splits A, and prices say the rest.
TEST(PlanTensorSplits, OfLayersHasAdaptersFollowTheirProducts) {
  ir::Function step = ir::BuildModel("gpt", "layers=2,hidden=16,heads=8,seq=4,vocab=12", 2);
  ASSERT_TRUE(MakeTrainingStep(step, {.lora = {.rank = 4}}).ok());
  const auto splits = PlanTensorSplits(step, 2, PatternScope::kLayers);
  ASSERT_TRUE(splits.ok()) << splits.status();
  std::string text;
  for (const ir::Input& input : step.inputs()) {
    const absl::string_view name = step.value_name(input.value);
    const bool shown = ir::IsWeight(input.role) && step.type(input.value).dims.size() > 1 &&
                       (absl::StartsWith(name, "h.1.mlp") || absl::StrContains(name, "h.1.attn.q"));
    if (!shown) continue;
    absl::StrAppend(&text, name, " ", static_cast<int>(splits->dims[input.value]),
                    splits->open[input.value] != 0 ? "?" : "", "\n");
  }
  EXPECT_EQ(text,
            "h.1.attn.q.weight 1\nh.1.mlp.up.weight 1\nh.1.mlp.down.weight 0\n"
            "h.1.attn.q.lora_a.weight 1?\nh.1.attn.q.lora_b.weight 0?\n"
            "h.1.mlp.up.lora_a.weight 1?\nh.1.mlp.up.lora_b.weight 0?\n"
            "h.1.mlp.down.lora_a.weight 0\nh.1.mlp.down.lora_b.weight 1?\n");
}

}  // namespace
}  // namespace shard_plan_test_cc
}  // namespace orrery::transforms
