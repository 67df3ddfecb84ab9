#ifndef ORRERY_LOWERING_NETWORK_EXCHANGE_H_
#define ORRERY_LOWERING_NETWORK_EXCHANGE_H_

#include <vector>

#include "cluster/topology.h"
#include "cost_models/collectives/pricing.h"
#include "cost_models/collectives/rounds.h"
#include "support/units.h"

namespace orrery::lowering {

/// Devices, by rank of a group.
using Devices = std::vector<cluster::DeviceId>;

/// What several groups of ranks do at once, each the same rounds: a collective along an axis of the
/// mesh, or the sends of a stage to another. What it costs, whatever the size.
struct Exchange {
  std::vector<cost_models::RoundsCost> alone;  // of each group, by itself
  cost_models::RoundsCost together;            // of all at once: the links they share count
  /// Whether all groups pay the same by themselves; whether they do together, the links tell that
  /// they share (link_classes.h). `together` is of the slowest.
  bool alike = true;
};

/// The exchange of `groups`, which all carry out `rounds` as a collective that starts in step.
Exchange MakeExchange(const std::vector<Devices>& groups, const cost_models::Rounds& rounds,
                      const cluster::Topology& topology);

/// The rounds of one message from rank 0 to rank 1.
cost_models::Rounds MessageRounds();

}  // namespace orrery::lowering

#endif  // ORRERY_LOWERING_NETWORK_EXCHANGE_H_
