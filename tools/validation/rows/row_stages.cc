#include "tools/validation/rows/row_stages.h"

#include <algorithm>

namespace orrery::tools {

void SetStages(const MeasuredStep& step, absl::string_view stack, int64_t stages,
               transforms::ParallelPlan& plan) {
  const int64_t layers = step.model.layers, most = (layers + 2) / stages;
  if (stages == 1) return;
  const bool even = layers % stages == 0 || (layers + 2) % stages == 0;
  const int64_t each = (layers - 1) / stages + 1, last = layers - each * (stages - 1);
  if (stack == "deepspeed" && !even && last > 0) {
    // DeepSpeed's partition_balanced fills one stage after the other.
    plan.layers_per_stage.assign(static_cast<size_t>(stages), each);
    plan.layers_per_stage.back() = last;
    return;
  }
  if (stages == 2 || layers % stages == 0 || (layers + 2) % stages != 0) {
    plan.stages_by = transforms::StagesBy::kLayers;
  } else if (most == 1) {
    plan.split_at = "^(h\\.[0-9]+\\.ln_1|ln_f)$";  // embedding and loss by themselves
  } else {
    plan.layers_per_stage.assign(static_cast<size_t>(stages), most);
    --plan.layers_per_stage.front();
    --plan.layers_per_stage.back();
  }
}

int64_t MostChunks(const MeasuredStep& step, int64_t pp) {
  const int64_t layers = step.model.layers;
  int64_t chunks = (layers + 2) / pp;
  while (chunks > 2 && layers % (pp * chunks) != 0 && (layers + 2) % (pp * chunks) != 0) --chunks;
  return std::max<int64_t>(2, chunks);
}

}  // namespace orrery::tools
