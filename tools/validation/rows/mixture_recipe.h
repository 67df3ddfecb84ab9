#ifndef ORRERY_TOOLS_VALIDATION_ROWS_MIXTURE_RECIPE_H_
#define ORRERY_TOOLS_VALIDATION_ROWS_MIXTURE_RECIPE_H_

#include "absl/strings/string_view.h"
#include "tools/validation/rows/measured_steps.h"

namespace orrery::tools {

/// How a row's job runs its experts.
struct MixtureRecipe {
  bool sends_tokens_once = false;     // StackKernels::sends_tokens_once
  bool overlaps_experts = false;      // StackKernels::overlaps_experts
  absl::string_view recomputed = {};  // modules, as rows have them
};

/// What the row says in words ("HybridEP", "EP overlap"), or else for rows of Megatron Bridge's
/// performance summary the recipe of that model on that device.
MixtureRecipe MixtureRecipeOf(const MeasuredStep& step);

}  // namespace orrery::tools

#endif  // ORRERY_TOOLS_VALIDATION_ROWS_MIXTURE_RECIPE_H_
