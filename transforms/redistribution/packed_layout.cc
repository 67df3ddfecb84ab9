#include "transforms/redistribution/packed_layout.h"

#include "support/check.h"

namespace orrery::transforms::redistribution {

using ir::AxisIndex;
using ir::AxisList;
using ir::kMaxAxes;

PackedLayout::PackedLayout(const ir::Sharding& sharding) : PackedLayout() {
  ORRERY_CHECK(sharding.split.size() <= kMaxDims) << sharding.split.size() << " dimensions";
  for (size_t d = 0; d < sharding.split.size(); ++d) {
    SetSplit(static_cast<int>(d), sharding.split[d], sharding.block(d));
  }
  for (const AxisIndex axis : sharding.partial.axes()) {
    SetPartial(axis, sharding.reductions[axis]);
  }
}

ir::Sharding PackedLayout::Unpack(size_t rank) const {
  ir::Sharding sharding;
  for (size_t d = 0; d < rank; ++d) {
    const AxisList list = axes(static_cast<int>(d));
    if (!list.empty()) sharding.Set(d, rank, list, block(static_cast<int>(d)));
  }
  for (AxisIndex axis = 0; axis < kMaxAxes; ++axis) {
    if (role(axis) != AxisRole::kPartial) continue;
    sharding.partial.push_back(axis);
    sharding.reductions[axis] = reduction(axis);
  }
  return sharding;
}

AxisRole PackedLayout::role(AxisIndex axis) const {
  const int dim = roles_[axis] & 31;
  if (dim == kReplicated) return AxisRole::kReplicates;
  return dim == kPartialDim ? AxisRole::kPartial : AxisRole::kSplits;
}

int PackedLayout::dim(AxisIndex axis) const {
  const int dim = roles_[axis] & 31;
  return dim < kMaxDims ? dim : -1;
}

ir::Reduction PackedLayout::reduction(AxisIndex axis) const {
  return static_cast<ir::Reduction>(roles_[axis] >> 5);
}

AxisList PackedLayout::axes(int dim) const {
  std::array<AxisIndex, kMaxAxes> at;
  size_t count = 0;
  for (AxisIndex axis = 0; axis < kMaxAxes; ++axis) {
    if ((roles_[axis] & 31) != dim) continue;
    at[roles_[axis] >> 5] = axis;
    ++count;
  }
  AxisList list;
  for (size_t position = 0; position < count; ++position) list.push_back(at[position]);
  return list;
}

int PackedLayout::major(int dim) const {
  for (AxisIndex axis = 0; axis < kMaxAxes; ++axis) {
    if (roles_[axis] == dim) return axis;  // position 0
  }
  return -1;
}

int64_t PackedLayout::block(int dim) const {
  const int first = major(dim);
  return first < 0 ? ir::kNestedChunks : blocks_[static_cast<size_t>(first)];
}

void PackedLayout::SetSplit(int dim, const AxisList& axes, int64_t block) {
  for (AxisIndex axis = 0; axis < kMaxAxes; ++axis) {
    if ((roles_[axis] & 31) != dim) continue;
    roles_[axis] = kReplicated;
    blocks_[axis] = 0;
  }
  uint8_t position = 0;
  for (const AxisIndex axis : axes.axes()) {
    if (position == 0) blocks_[axis] = block;
    roles_[axis] = Pack(static_cast<uint8_t>(dim), position++);
  }
}

void PackedLayout::SetPartial(AxisIndex axis, ir::Reduction reduction) {
  roles_[axis] = Pack(kPartialDim, static_cast<uint8_t>(reduction));
}

}  // namespace orrery::transforms::redistribution
