#ifndef ORRERY_TRANSFORMS_MEMORY_KEEP_PLAN_H_
#define ORRERY_TRANSFORMS_MEMORY_KEEP_PLAN_H_

#include <cstdint>
#include <span>
#include <vector>

#include "ir/function.h"
#include "transforms/memory/recompute_policy.h"
#include "transforms/stages/forward_layers.h"

namespace orrery::transforms {

/// What becomes of the values that a forward function makes.
struct KeepPlan {
  /// Values that are rematerialized where a later phase wants them; the others are kept for it.
  IdTable<ir::ValueId, char> rematerialized;
  /// The groups of ops that are run again as a whole, as RecomputeRecord::groups has them; no rows:
  /// only what is read is.
  std::vector<int32_t> groups = {};
  /// Of those that later phases want, how many.
  int64_t dropped = 0;
};

/// Decides it by `rule`. `saved` marks what later phases read; `layers` are those of `forward`.
///
///  - What the record of the policy marks is rematerialized. By layers, what crosses the end of a
///  group of layers is kept, wanted so far or not: the checkpoints.
///  - Else what no later phase reads is rematerialized rather than kept: its operands lead to
///  something that is.
///  - What is made from parameters alone is rematerialized unless it is read.
///  - With `gathers`, what AllGather makes of activations is rematerialized, from a part that
///  counts as if it were read in its place.
KeepPlan PlanToKeep(const ir::Function& forward, const KeepRule& rule,
                    std::span<const LayerRange> layers, const IdTable<ir::ValueId, char>& saved);

}  // namespace orrery::transforms

#endif  // ORRERY_TRANSFORMS_MEMORY_KEEP_PLAN_H_
