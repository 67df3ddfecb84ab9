#include "cost_models/over_links.h"

#include "cost_models/collectives/choice.h"

namespace orrery::cost_models {

Duration OverLinks::Transfer(Bytes size, const cluster::PathInfo& path) const {
  return path.latency + TransferTime(size, path.rate);
}

Duration OverLinks::Collective(CollectiveKind kind, Bytes size,
                               std::span<const cluster::DeviceId> group,
                               const cluster::Topology& topology) const {
  return FastestTime({.kind = kind, .size = size, .group = group}, topology);
}

}  // namespace orrery::cost_models
