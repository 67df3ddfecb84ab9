#include "transforms/redistribution/testing/dtensor_cost_by_axis.h"

#include <limits>

#include "transforms/redistribution/dtensor_placement.h"
#include "transforms/redistribution/dtensor_price.h"
#include "transforms/redistribution/packed_layout.h"

namespace orrery::transforms::redistribution {

absl::StatusOr<double> DtensorCostByAxis(const Problem& problem, const DtensorOptions& options) {
  if (auto status = CheckDtensor(problem, options); !status.ok()) return status;
  const DtensorTopology topology(problem.mesh, options.devices_per_host);
  const PackedLayout source(problem.from), target(problem.to);
  double bytes =
      static_cast<double>(ir::ElementCount(problem.dims)) * static_cast<double>(problem.itemsize);
  for (ir::AxisIndex axis = 0; axis < static_cast<ir::AxisIndex>(topology.axes()); ++axis) {
    if (source.role(axis) != AxisRole::kSplits) continue;
    bytes /= static_cast<double>(problem.mesh.size(axis));
  }
  double cost = 0;
  for (ir::AxisIndex axis = 0; axis < static_cast<ir::AxisIndex>(topology.axes()); ++axis) {
    const DtensorPlacement from = PlacementOf(source, axis), to = PlacementOf(target, axis);
    if (from == to) continue;
    if (!HasStep(from, to)) return std::numeric_limits<double>::infinity();
    const DtensorRing& ring = topology.ring(axis);
    switch (KindOf(from, to)) {
      case MoveKind::kAllGather:
        bytes *= static_cast<double>(ring.ranks);
        cost += DtensorAllGather(ring, bytes).total();
        break;
      case MoveKind::kAllToAll:
        cost += DtensorAllToAll(ring, bytes, options.all_to_all_penalty).total();
        break;
      case MoveKind::kAllReduce:
        cost += DtensorAllReduce(ring, bytes).total();
        break;
      case MoveKind::kReduceScatter:
        cost += DtensorAllGather(ring, bytes).total();
        bytes /= static_cast<double>(ring.ranks);
        break;
      default:  // within a rank: free, also where MakeDtensor may have a price
        break;
    }
  }
  return cost;
}

}  // namespace orrery::transforms::redistribution
