#ifndef ORRERY_LOWERING_NETWORK_EXCHANGE_H_
#define ORRERY_LOWERING_NETWORK_EXCHANGE_H_

#include <vector>

#include "absl/functional/function_ref.h"
#include "cluster/collective_profile.h"
#include "cluster/topology.h"
#include "cost_models/collectives/pricing.h"
#include "cost_models/collectives/rounds.h"
#include "lowering/network/group_price.h"
#include "lowering/network/link_classes.h"
#include "lowering/network/places.h"
#include "support/units.h"

namespace orrery::lowering {

/// What several groups of ranks do at once, each the same rounds: a collective along an axis of the
/// mesh, or the sends of a stage to another. What it costs, whatever the size.
struct Exchange {
  cost_models::RoundsCost alone;     // of the first group, by itself
  cost_models::RoundsCost together;  // of all at once: the links they share count
  GroupLinks links;                  // of each group
  /// Whether all groups pay the same by themselves; whether they do together, the links tell that
  /// they share (link_classes.h). `together` is of the slowest.
  bool alike = true;
  /// Seconds that the busiest link of several groups needs for all that a part of each puts on it,
  /// whatever the round; 0 where groups share none.
  double busiest_s_a_part = 0;
  /// The link that is busiest when all groups are under way; -1: no link carries anything.
  cluster::LinkNumber busiest = -1;
};

/// The exchange of `groups`, which all carry out `rounds` as a collective that starts in step. Each
/// group is priced by itself.
Exchange MakeExchange(const std::vector<Devices>& groups, const cost_models::Rounds& rounds,
                      const cluster::Topology& topology);

/// The same, where it is known what groups pay: of the group of that number, or of another one in
/// its place.
Exchange MakeExchange(const std::vector<Devices>& groups, const cost_models::Rounds& rounds,
                      const cluster::Topology& topology,
                      absl::FunctionRef<GroupPrice&(size_t)> price_of);

/// Whether several of the groups are on one bridge between boards of a node, beside links that they
/// have to themselves: each has a share of the bridge, and one that stood for all would have one.
bool GroupsCrowdBridges(const Exchange& exchange, const cluster::Topology& topology);

/// All groups in step, round by round, take longer than what links carry in all rounds says where
/// rounds load links that others leave idle. This is by how much more a group loads links for as
/// long, each group being a flow of its own that shares them with the others: 1 where it takes what
/// it carries. Requires groups that are alike.
double LoadInStep(const Exchange& exchange, Bytes size,
                  const cluster::CollectiveProtocol& protocol);

/// The rounds of one message from rank 0 to rank 1.
cost_models::Rounds MessageRounds();

}  // namespace orrery::lowering

#endif  // ORRERY_LOWERING_NETWORK_EXCHANGE_H_
