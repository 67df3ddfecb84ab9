#include "lowering/network/geometry.h"

#include "absl/strings/str_cat.h"
#include "support/check.h"

namespace orrery::lowering {

Geometry::Geometry(const transforms::PipelinedStep& step)
    : mesh_(step.mesh), devices_(step.devices), positions_(step.ranks) {
  const auto pp = mesh_.Find("pp");
  ranks_.resize(static_cast<size_t>(pp.has_value() ? mesh_.size(*pp) : 1));
  for (size_t s = positions_.size(); s < step.stages.size(); ++s) {
    positions_.push_back(static_cast<int32_t>(s));  // where nothing else is said, one each
  }
  for (const int32_t position : positions_)
    ORRERY_CHECK(position < positions()) << ir::ToString(mesh_);
  for (int32_t rank = 0; rank < mesh_.size(); ++rank) {
    const int64_t stage = pp.has_value() ? Coordinate(rank, *pp) : 0;
    ranks_[static_cast<size_t>(stage)].push_back(rank);
  }
}

cluster::DeviceId Geometry::device(int32_t rank) const {
  return cluster::DeviceId(devices_.empty() ? rank : devices_[static_cast<size_t>(rank)]);
}

std::vector<std::vector<int32_t>> Geometry::Groups(const ir::AxisList& axes) const {
  // Ranks are in one group when they agree on what is left after their coordinates along `axes` are
  // taken off. Stages are alike, so the first one stands for all. What is left is the number of the
  // group's first rank: so groups come in its order.
  const std::vector<int32_t>& ranks = ranks_.front();
  const size_t ranks_a_group = static_cast<size_t>(mesh_.size(axes));
  std::vector<int32_t> group_of(static_cast<size_t>(ranks.back()) + 1, -1);  // by what is left
  std::vector<std::vector<int32_t>> groups;
  for (size_t position = 0; position < ranks.size(); ++position) {
    int64_t rest = ranks[position];
    for (const ir::AxisIndex axis : axes.axes()) {
      rest -= Coordinate(ranks[position], axis) * mesh_.stride(axis);
    }
    int32_t& group = group_of[static_cast<size_t>(rest)];
    if (group < 0) {
      group = static_cast<int32_t>(groups.size());
      groups.emplace_back().reserve(ranks_a_group);
    }
    groups[static_cast<size_t>(group)].push_back(static_cast<int32_t>(position));
  }
  return groups;
}

std::vector<cluster::DeviceId> Geometry::Devices(int32_t stage,
                                                 const std::vector<int32_t>& positions) const {
  std::vector<cluster::DeviceId> devices;
  for (const int32_t position : positions) {
    devices.push_back(device(ranks_of_stage(stage)[static_cast<size_t>(position)]));
  }
  return devices;
}

std::string Geometry::Name(int32_t rank) const {
  std::string name;
  for (size_t axis = 0; axis < mesh_.axes().size(); ++axis) {
    absl::StrAppend(&name, name.empty() ? "" : " ", mesh_.axes()[axis].name,
                    Coordinate(rank, static_cast<ir::AxisIndex>(axis)));
  }
  return name;
}

}  // namespace orrery::lowering
