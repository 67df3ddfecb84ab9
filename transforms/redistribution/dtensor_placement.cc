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

StepKind KindOf(const DtensorPlacement& from, const DtensorPlacement& to) {
  const bool splits = to.role == AxisRole::kSplits;
  if (to.role == AxisRole::kPartial) return StepKind::kMakePartial;
  switch (from.role) {
    case AxisRole::kReplicates:
      return StepKind::kSlice;
    case AxisRole::kPartial:
      return splits ? StepKind::kReduceScatter : StepKind::kAllReduce;
    case AxisRole::kSplits:
      break;
  }
  return splits ? StepKind::kAllToAll : StepKind::kAllGather;
}

}  // namespace orrery::transforms::redistribution
