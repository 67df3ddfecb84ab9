#ifndef ORRERY_TRANSFORMS_REDISTRIBUTION_DTENSOR_PLACEMENT_H_
#define ORRERY_TRANSFORMS_REDISTRIBUTION_DTENSOR_PLACEMENT_H_

#include "ir/layout.h"
#include "transforms/redistribution/packed_layout.h"
#include "transforms/redistribution/step.h"

namespace orrery::transforms::redistribution {

/// What a mesh axis does: DTensor's Shard(dim), Replicate or Partial(reduction).
struct DtensorPlacement {
  AxisRole role = AxisRole::kReplicates;
  int dim = -1;
  ir::Reduction reduction = ir::Reduction::kSum;

  friend bool operator==(const DtensorPlacement&, const DtensorPlacement&) = default;
};

DtensorPlacement PlacementOf(const PackedLayout& layout, ir::AxisIndex axis);

/// Whether DTensor has a step from one to the other: none from split to partial, nor from one
/// reduction to another.
bool HasStep(const DtensorPlacement& from, const DtensorPlacement& to);

/// The kind of that step, of two that differ.
MoveKind KindOf(const DtensorPlacement& from, const DtensorPlacement& to);

}  // namespace orrery::transforms::redistribution

#endif  // ORRERY_TRANSFORMS_REDISTRIBUTION_DTENSOR_PLACEMENT_H_
