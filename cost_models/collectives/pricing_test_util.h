#ifndef ORRERY_COST_MODELS_COLLECTIVES_PRICING_TEST_UTIL_H_
#define ORRERY_COST_MODELS_COLLECTIVES_PRICING_TEST_UTIL_H_

#include <span>

#include "cost_models/collectives/pricing.h"

namespace orrery::cost_models {

/// CostOf and TimeOf in one, for one group.
inline Duration PriceOn(const cluster::Topology& topology, DeviceGroup group, const Rounds& rounds,
                        Bytes size) {
  return TimeOf(CostOf(topology, std::span(&group, 1), rounds), size);
}

/// The flow of several groups that run the same collective at once: what they share slows each of
/// them down.
inline CollectiveFlow LoadsOf(const cluster::Topology& topology,
                              std::span<const DeviceGroup> groups, const Rounds& rounds, Bytes size,
                              const cluster::CollectiveProtocol& protocol = IdealProtocol()) {
  return FlowOf(CostOf(topology, groups, rounds), size, protocol);
}

}  // namespace orrery::cost_models

#endif  // ORRERY_COST_MODELS_COLLECTIVES_PRICING_TEST_UTIL_H_
