#include "cluster/topology.h"

#include <array>

#include "absl/strings/str_cat.h"
#include "cluster/topologies.h"
#include "support/check.h"
#include "support/status.h"

namespace orrery::cluster {
namespace {

constexpr std::array kTopologies = {
#define ORRERY_TOPOLOGY(Name, file) &k##Name##Topology,
#include "cluster/topologies.def"
#undef ORRERY_TOPOLOGY
};

absl::Status CheckCount(absl::string_view what, int32_t count) {
  if (count >= 1) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("got ", count, " ", what, "; wanted at least 1"));
}

absl::Status CheckSpeed(absl::string_view what, const PathInfo& speed) {
  if (speed.rate >= Bandwidth(0) && speed.latency >= Duration(0)) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("got a ", what, " of ", ToString(speed.rate),
                                                 " and ", ToString(speed.latency),
                                                 "; wanted neither below 0"));
}

void CheckPair(const Topology& topology, DeviceId from, DeviceId to) {
  ORRERY_CHECK(from.valid() && to.valid() && from != to && from.index() < topology.devices() &&
               to.index() < topology.devices())
      << "from " << from << " to " << to << " of " << topology.devices();
}

}  // namespace

std::span<const TopologyKind* const> AllTopologies() { return kTopologies; }

Topology::Topology() : Topology(kFullyConnectedTopology, TopologyShape{}) {}

absl::StatusOr<Topology> Topology::Create(const TopologyKind& kind, const TopologyShape& shape) {
  ORRERY_RETURN_IF_ERROR(CheckCount("devices", shape.devices));
  ORRERY_RETURN_IF_ERROR(CheckCount("devices a node", shape.devices_per_node));
  ORRERY_RETURN_IF_ERROR(CheckSpeed("port", shape.port));
  ORRERY_RETURN_IF_ERROR(CheckSpeed("nic", shape.nic));
  ORRERY_RETURN_IF_ERROR(kind.check(shape));
  return Topology(kind, shape);
}

PathInfo Topology::Path(DeviceId from, DeviceId to) const {
  CheckPair(*this, from, to);
  if (kind_->path != nullptr) return kind_->path(shape_, from, to);
  std::vector<LinkNumber> route;
  kind_->append_route(shape_, from, to, route);
  PathInfo path = kind_->link_at(shape_, route.front()).speed;
  for (size_t i = 1; i < route.size(); ++i) {
    path = Join(path, kind_->link_at(shape_, route[i]).speed);
  }
  return path;
}

Link Topology::LinkAt(LinkNumber link) const {
  ORRERY_CHECK(link >= 0 && link < link_count()) << "link " << link << " of " << link_count();
  return kind_->link_at(shape_, link);
}

void Topology::AppendRoute(DeviceId from, DeviceId to, std::vector<LinkNumber>& route) const {
  CheckPair(*this, from, to);
  kind_->append_route(shape_, from, to, route);
}

std::string Topology::VertexName(VertexId vertex) const {
  if (vertex.index() < devices()) return ToString(DeviceId(vertex.index()));
  return absl::StrCat("switch", vertex.index() - devices());
}

std::string Topology::LinkName(LinkNumber link) const {
  const Link row = LinkAt(link);
  return absl::StrCat(VertexName(row.from), " -> ", VertexName(row.to), " (", row.kind, ")");
}

std::optional<Bandwidth> Topology::Bisection() const {
  return kind_->bisection != nullptr ? kind_->bisection(shape_) : std::nullopt;
}

}  // namespace orrery::cluster
