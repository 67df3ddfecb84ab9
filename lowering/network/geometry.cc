#include "lowering/network/geometry.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "support/check.h"

namespace orrery::lowering {

Geometry::Geometry(const transforms::PipelinedStep& step)
    : mesh_(step.mesh),
      places_(step.unequal.places),
      replica_of_(step.unequal.replica_of),
      devices_(step.devices),
      positions_(step.ranks) {
  for (size_t s = positions_.size(); s < step.stages.size(); ++s) {
    positions_.push_back(static_cast<int32_t>(s));  // where nothing else is said, one each
  }
  unequal() ? PlaceUnequalRanks() : PlaceRanks();
  for (const int32_t position : positions_)
    ORRERY_CHECK(position < positions()) << ir::ToString(mesh_);
}

void Geometry::PlaceRanks() {
  const auto pp = mesh_.Find("pp");
  ranks_.resize(static_cast<size_t>(pp.has_value() ? mesh_.size(*pp) : 1));
  for (int32_t rank = 0; rank < mesh_.size(); ++rank) {
    const int64_t stage = pp.has_value() ? Coordinate(mesh_, rank, *pp) : 0;
    ranks_[static_cast<size_t>(stage)].push_back(rank);
  }
}

void Geometry::PlaceUnequalRanks() {
  in_step_ = replica_of_.empty();
  for (const transforms::StagePlace& place : places_) {
    in_step_ = in_step_ && place.mesh == places_.front().mesh;
    ORRERY_CHECK(std::ssize(place.devices) == place.mesh.size()) << ir::ToString(place.mesh);
    const auto dp = place.mesh.Find("dp");
    std::vector<int32_t>& ranks = ranks_.emplace_back();
    std::vector<int32_t>& replicas = replicas_.emplace_back();
    for (int32_t rank = 0; rank < place.mesh.size(); ++rank) {
      ranks.push_back(static_cast<int32_t>(devices_.size()));
      devices_.push_back(place.devices[static_cast<size_t>(rank)]);
      replicas.push_back(dp.has_value() ? static_cast<int32_t>(Coordinate(place.mesh, rank, *dp))
                                        : 0);
    }
  }
}

cluster::DeviceId Geometry::device(int32_t rank) const {
  return cluster::DeviceId(devices_.empty() ? rank : devices_[static_cast<size_t>(rank)]);
}

int32_t Geometry::RunnersOf(int32_t stage) const {
  if (!dealt()) return 1;
  return 1 + *std::ranges::max_element(replicas_at(position_of(stage)));
}

std::vector<std::vector<int32_t>> Geometry::Groups(int32_t stage, const ir::AxisList& axes) const {
  // Ranks are in one group when they agree on what is left after their coordinates along `axes` are
  // taken off. Stages that are alike have the same groups: those of the first. What is left is the
  // number of the group's first rank: so groups come in its order.
  const int32_t at = unequal() ? position_of(stage) : 0;
  const ir::Mesh& mesh = mesh_at(at);
  const std::vector<int32_t>& ranks = ranks_at(at);
  const int32_t first = unequal() ? ranks.front() : 0;
  const size_t ranks_a_group = static_cast<size_t>(mesh.size(axes));
  std::vector<int32_t> group_of(static_cast<size_t>(ranks.back() - first) + 1, -1);  // by the rest
  std::vector<std::vector<int32_t>> groups;
  for (size_t position = 0; position < ranks.size(); ++position) {
    const int32_t rank = ranks[position] - first;
    int64_t rest = rank;
    for (const ir::AxisIndex axis : axes.axes()) {
      rest -= Coordinate(mesh, rank, axis) * mesh.stride(axis);
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
  const ir::Mesh* mesh = &mesh_;
  int64_t within = rank;
  int32_t position = -1;
  for (size_t p = 0; unequal() && p < places_.size() && position < 0; ++p) {
    mesh = &places_[p].mesh;
    if (within < mesh->size()) position = static_cast<int32_t>(p);
    if (position < 0) within -= mesh->size();
  }
  std::string name;
  for (size_t axis = 0; axis < mesh->axes().size(); ++axis) {
    const bool stage = position >= 0 && mesh->axes()[axis].name == "pp";
    absl::StrAppend(&name, name.empty() ? "" : " ", mesh->axes()[axis].name,
                    stage ? position : Coordinate(*mesh, within, static_cast<ir::AxisIndex>(axis)));
  }
  return name;
}

}  // namespace orrery::lowering
