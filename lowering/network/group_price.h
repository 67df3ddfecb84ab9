#ifndef ORRERY_LOWERING_NETWORK_GROUP_PRICE_H_
#define ORRERY_LOWERING_NETWORK_GROUP_PRICE_H_

#include <cstdint>
#include <vector>

#include "cluster/topology.h"
#include "cost_models/collectives/pricing.h"
#include "cost_models/collectives/rounds.h"
#include "lowering/network/places.h"

namespace orrery::lowering {

/// What a group of ranks pays for rounds, by itself; and which links another group of its place
/// loads, for which it takes a route a link, and no counting.
class GroupPrice {
 public:
  /// `topology` lives longer.
  GroupPrice(Devices group, const cost_models::Rounds& rounds, const cluster::Topology& topology);

  /// Of that group; of others of its place, but for the numbers of the links.
  const cost_models::RoundsCost& cost() const { return cost_; }

  /// Appends the links that `other` loads: what cost().volumes says of the group is true of them in
  /// the same order. Requires a group of the same place, and the same rounds.
  void AppendLinks(const Devices& other, const cost_models::Rounds& rounds,
                   std::vector<cluster::LinkNumber>& links);

 private:
  // A transfer that is the first to use `links` links.
  struct FirstUse {
    cost_models::Transfer transfer;
    int32_t links = 0;
  };

  void FindFirstUses(const cost_models::Rounds& rounds);

  const cluster::Topology& topology_;
  Devices group_;
  cost_models::RoundsCost cost_;
  std::vector<FirstUse> first_uses_;  // by the links of cost_.volumes
  std::vector<int32_t> positions_;    // of these links on their routes
  std::vector<cluster::LinkNumber> route_;
};

}  // namespace orrery::lowering

#endif  // ORRERY_LOWERING_NETWORK_GROUP_PRICE_H_
