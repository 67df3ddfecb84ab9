#include "transforms/redistribution/dtensor_placement.h"

namespace orrery::transforms::redistribution {

DtensorPlacement PlacementOf(const PackedLayout& layout, ir::AxisIndex axis) {
  DtensorPlacement placement = {.role = layout.role(axis), .dim = layout.dim(axis)};
  if (placement.role == AxisRole::kPartial) placement.reduction = layout.reduction(axis);
  return placement;
}

bool HasStep(const DtensorPlacement& from, const DtensorPlacement& to) {
  return to.role != AxisRole::kPartial || from.role == AxisRole::kReplicates;
}

MoveKind KindOf(const DtensorPlacement& from, const DtensorPlacement& to) {
  const bool splits = to.role == AxisRole::kSplits;
  if (to.role == AxisRole::kPartial) return MoveKind::kMakePartial;
  switch (from.role) {
    case AxisRole::kReplicates:
      return MoveKind::kSlice;
    case AxisRole::kPartial:
      return splits ? MoveKind::kReduceScatter : MoveKind::kAllReduce;
    case AxisRole::kSplits:
      break;
  }
  return splits ? MoveKind::kAllToAll : MoveKind::kAllGather;
}

}  // namespace orrery::transforms::redistribution
