#include "tools/validation/rows/mixture_recipe.h"

#include "absl/strings/match.h"

namespace orrery::tools {
namespace mixture_recipe_cc {
namespace {

// Megatron Bridge 26.04, scripts/performance/configs/*/*_workload_base_configs.py, the variants
// with the batches and layouts of the summary: moe_flex_dispatcher_backend is "hybridep" or
// "deepep", moe_a2a_overlap, recompute_modules.
struct Recipe {
  absl::string_view model, device;  // begin so
  MixtureRecipe is;
};
constexpr Recipe kRecipes[] = {
    {"DeepSeekV3", "B200", {true, true, "selective: mla_up_proj, mlp"}},
    {"DeepSeekV3", "GB200", {true, false, "selective: mlp"}},
    {"DeepSeekV3", "", {true, false, "selective: mla_up_proj"}},
    {"Kimi_K2", "GB", {true, false, "selective: mla_up_proj"}},
    {"Kimi_K2", "", {false, false, "selective: mla_up_proj"}},
    {"Nemotron_3_Nano", "H100", {true, false, "selective: moe, layernorm, core_attn, moe_act"}},
    {"Nemotron_3_Super", "B200", {true, false, "selective: moe_act, layernorm, core_attn"}},
    {"Nemotron_3", "", {true, false, ""}},
    {"Qwen3_30B", "", {true, false, ""}},
    {"Qwen3_235B", "GB", {true, false, ""}},
    {"Qwen3_235B", "H100", {false, true, ""}},
    {"GPT OSS 120B", "GB200", {false, true, "selective: layernorm, moe_act"}},
    {"GPT OSS 120B", "B200", {false, false, "selective: layernorm, moe_act"}},
    {"GPT OSS 120B", "H100", {false, false, "selective: layernorm, moe_act"}},
    {"GPT OSS 120B", "B300", {true, false, ""}},
};

}  // namespace
}  // namespace mixture_recipe_cc

MixtureRecipe MixtureRecipeOf(const MeasuredStep& step) {
  MixtureRecipe said = {.sends_tokens_once = absl::StrContains(step.options, "hybridep") ||
                                             absl::StrContains(step.options, "deepep"),
                        .overlaps_experts = absl::StartsWith(step.overlap, "ep overlap")};
  const bool of_summary = absl::StartsWith(step.id, "mbridge-2");
  if (!of_summary || said.sends_tokens_once || said.overlaps_experts) return said;
  for (const mixture_recipe_cc::Recipe& recipe : mixture_recipe_cc::kRecipes) {
    const bool fits = absl::StartsWith(step.model.name, recipe.model) &&
                      absl::StartsWith(step.device, recipe.device);
    if (fits) return recipe.is;
  }
  return said;
}

}  // namespace orrery::tools
