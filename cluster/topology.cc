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
  ORRERY_CHECK(from.valid() && to.valid() && from != to && from.index() < devices() &&
               to.index() < devices())
      << "from " << from << " to " << to << " of " << devices();
  return kind_->path(shape_, from, to);
}

}  // namespace orrery::cluster
