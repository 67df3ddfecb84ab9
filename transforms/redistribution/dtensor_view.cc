#include "transforms/redistribution/dtensor_view.h"

namespace orrery::transforms::redistribution {
namespace dtensor_view_cc {
namespace {

using ir::AxisIndex;

// Axes by their position in a dimension.
struct Positions {
  std::array<std::array<AxisIndex, ir::kMaxAxes>, ir::kMaxAxes> axes;
  std::array<uint8_t, ir::kMaxAxes> count = {};
};

Positions ReadRoles(const PackedLayout& layout, AxisIndex axes, DtensorView& view) {
  Positions positions;
  for (AxisIndex axis = 0; axis < static_cast<AxisIndex>(axes); ++axis) {
    const AxisMask bit = 1u << axis;
    switch (layout.role(axis)) {
      case AxisRole::kReplicates:
        view.replicating |= bit;
        break;
      case AxisRole::kPartial:
        view.partial |= bit;
        view.reductions = static_cast<uint8_t>(view.reductions | BitOf(layout.reduction(axis)));
        break;
      case AxisRole::kSplits:
        view.splitting |= bit;
        view.dim[axis] = static_cast<int8_t>(layout.dim(axis));
        view.position[axis] = static_cast<int8_t>(layout.position(axis));
        const auto position = static_cast<size_t>(layout.position(axis));
        positions.axes[position][positions.count[position]++] = axis;
    }
  }
  return positions;
}

}  // namespace
}  // namespace dtensor_view_cc

uint8_t Beside(ir::Reduction reduction) {
  const auto linear =
      static_cast<uint8_t>(BitOf(ir::Reduction::kSum) | BitOf(ir::Reduction::kAverage));
  return (BitOf(reduction) & linear) != 0 ? linear : BitOf(reduction);
}

DtensorView ReadDtensor(const PackedLayout& layout, const ir::Mesh& mesh, const ir::Dims& dims) {
  DtensorView view;
  view.layout = &layout;
  for (size_t d = 0; d < dims.size(); ++d) {
    view.depth[d] = 0;
    view.size[d] = view.wider[d] = dims[d];
  }
  const dtensor_view_cc::Positions positions =
      dtensor_view_cc::ReadRoles(layout, static_cast<ir::AxisIndex>(mesh.axes().size()), view);
  for (size_t position = 0; position < positions.count.size(); ++position) {
    for (size_t i = 0; i < positions.count[position]; ++i) {
      const ir::AxisIndex axis = positions.axes[position][i];
      const auto d = static_cast<size_t>(view.dim[axis]);
      ++view.depth[d];
      view.wider[d] = view.size[d];
      view.size[d] = FullestPart(view.size[d], mesh.size(axis));
    }
  }
  for (size_t d = 0; d < dims.size(); ++d) view.elements *= view.size[d];
  return view;
}

}  // namespace orrery::transforms::redistribution
