#include "cost_models/collectives/collective_algorithm.h"

#include <algorithm>
#include <array>

#include "support/check.h"

namespace orrery::cost_models {

#define ORRERY_COLLECTIVE(Name, file) extern const CollectiveAlgorithm k##Name##Collective;
#include "cost_models/collectives.def"
#undef ORRERY_COLLECTIVE

namespace {

constexpr std::array kAlgorithms = {
#define ORRERY_COLLECTIVE(Name, file) &k##Name##Collective,
#include "cost_models/collectives.def"
#undef ORRERY_COLLECTIVE
};

}  // namespace

std::span<const CollectiveAlgorithm* const> AllCollectiveAlgorithms() { return kAlgorithms; }

Duration FastestTime(const CollectiveCall& call) {
  ORRERY_CHECK(call.ranks >= 2) << call.ranks << " ranks";
  Duration fastest = kAlgorithms[0]->time(call);
  for (const CollectiveAlgorithm* algorithm : AllCollectiveAlgorithms().subspan(1)) {
    fastest = std::min(fastest, algorithm->time(call));
  }
  return fastest;
}

cluster::PathInfo SlowestHop(std::span<const cluster::DeviceId> group,
                             const cluster::Topology& topology) {
  ORRERY_CHECK(group.size() >= 2) << "a group of " << group.size();
  cluster::PathInfo slowest = topology.Path(group.back(), group.front());
  for (size_t i = 1; i < group.size(); ++i) {
    const cluster::PathInfo hop = topology.Path(group[i - 1], group[i]);
    slowest.rate = std::min(slowest.rate, hop.rate);
    slowest.latency = std::max(slowest.latency, hop.latency);
  }
  return slowest;
}

}  // namespace orrery::cost_models
