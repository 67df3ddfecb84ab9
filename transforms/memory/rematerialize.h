#ifndef ORRERY_TRANSFORMS_MEMORY_REMATERIALIZE_H_
#define ORRERY_TRANSFORMS_MEMORY_REMATERIALIZE_H_

#include <span>

#include "transforms/memory/keep_plan.h"
#include "transforms/stages/pipeline.h"

namespace orrery::transforms {

/// Values of `forward` that `later` functions of the same microbatch take as `saved`.
IdTable<ir::ValueId, char> FindSaved(const StageFunction& forward,
                                     std::span<StageFunction* const> later);

/// Rewrites `later`, the functions that run after `forward` for the same microbatch, in their
/// order. None takes as `saved` what `plan` has rematerialized: the first that reads it runs the
/// ops of `forward` for it, just before, and leaves it for those after it. `forward` then leaves
/// what they want, and what `others` take, and no longer does what nothing depends on.
void Rematerialize(const KeepPlan& plan, std::span<StageFunction* const> later,
                   std::span<const StageFunction* const> others, StageFunction& forward);

}  // namespace orrery::transforms

#endif  // ORRERY_TRANSFORMS_MEMORY_REMATERIALIZE_H_
