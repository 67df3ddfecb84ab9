#ifndef ORRERY_TRANSFORMS_MEMORY_OFFLOAD_PLAN_H_
#define ORRERY_TRANSFORMS_MEMORY_OFFLOAD_PLAN_H_

#include <cstdint>
#include <span>
#include <vector>

#include "ir/function.h"
#include "transforms/memory/offload.h"
#include "transforms/stages/forward_layers.h"
#include "transforms/stages/pipeline.h"

namespace orrery::transforms {

/// An activation that a stage leaves for its backward.
struct LeftActivation {
  ir::ValueId value;  // of forward
  ir::ValueId origin;
  int32_t last_use = -1;  // of it or of a view of it in forward, as a position in the order
  /// The layer of that use; of what is used after the last layer, the number of layers.
  int32_t layer = 0;
  bool offloaded = false;
};

/// What forward of the stage leaves, in the order in which it is made. `layers` are those of its
/// forward.
std::vector<LeftActivation> FindLeftActivations(const OffloadPolicy& policy,
                                                const PipelineStage& stage,
                                                std::span<const LayerRange> layers);

/// A copy that a backward function brings back: before the op at `position`.
struct InsertedLoad {
  ir::ValueId input;  // of the function
  int32_t position = 0;
};

/// When `part` copies back those of `left` that it takes and that are offloaded, in order.
std::vector<InsertedLoad> InsertLoads(const StageFunction& part,
                                      std::span<const LeftActivation> left, int64_t prefetch);

}  // namespace orrery::transforms

#endif  // ORRERY_TRANSFORMS_MEMORY_OFFLOAD_PLAN_H_
