#ifndef ORRERY_TRANSFORMS_MEMORY_KEEP_LESS_H_
#define ORRERY_TRANSFORMS_MEMORY_KEEP_LESS_H_

#include <span>

#include "transforms/memory/keep_plan.h"
#include "transforms/stages/pipeline.h"

namespace orrery::transforms {

/// Leaves less of element-wise chains for backward, as torch.compile's partitioner does: of what
/// `plan` keeps and `later` functions read in element-wise ops alone, backward computes anew what
/// makes the bytes that are kept for it the fewest: a minimum cut of the element-wise ops between
/// what is there anyhow (what others read, parameters, data), what other kernels make, and what is
/// read. Of cuts that are alike the one that computes least. Reductions and what is drawn by chance
/// are kept. Regions of over 4,096 values stay as they are.
void KeepLess(const StageFunction& forward, std::span<StageFunction* const> later, KeepPlan& plan);

}  // namespace orrery::transforms

#endif  // ORRERY_TRANSFORMS_MEMORY_KEEP_LESS_H_
