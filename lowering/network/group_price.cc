#include "lowering/network/group_price.h"

#include <utility>

#include "cost_models/collectives/routes.h"
#include "support/check.h"

namespace orrery::lowering {

GroupPrice::GroupPrice(Devices group, const cost_models::Rounds& rounds,
                       const cluster::Topology& topology)
    : topology_(topology), group_(std::move(group)) {
  const cost_models::DeviceGroup ranks = group_;
  cost_ = CostOf(topology, std::span(&ranks, 1), rounds);
}

// Volumes are in the order of first use, and so a link that is the next of them is used first here.
void GroupPrice::FindFirstUses(const cost_models::Rounds& rounds) {
  const std::vector<cost_models::LinkVolume>& volumes = cost_.volumes;
  const auto find = [&](const cost_models::Transfer& transfer) {
    if (positions_.size() == volumes.size()) return;
    route_.clear();
    AppendTransferRoute(topology_, group_, rounds.ranks_a_node, transfer, route_);
    FirstUse use{.transfer = transfer};
    for (size_t i = 0; i < route_.size() && positions_.size() < volumes.size(); ++i) {
      if (route_[i] != volumes[positions_.size()].link) continue;
      positions_.push_back(static_cast<int32_t>(i));
      ++use.links;
    }
    if (use.links > 0) first_uses_.push_back(use);
  };
  for (const cost_models::Round& round : rounds.rounds) {
    cost_models::ForEachTransfer(round, rounds.ranks, find);
  }
  ORRERY_CHECK(positions_.size() == volumes.size()) << "rounds that were not priced";
}

void GroupPrice::AppendLinks(const Devices& other, const cost_models::Rounds& rounds,
                             std::vector<cluster::LinkNumber>& links) {
  if (other == group_) {
    for (const cost_models::LinkVolume& volume : cost_.volumes) links.push_back(volume.link);
    return;
  }
  if (positions_.empty()) FindFirstUses(rounds);
  const int32_t* position = positions_.data();
  for (const FirstUse& use : first_uses_) {
    route_.clear();
    AppendTransferRoute(topology_, other, rounds.ranks_a_node, use.transfer, route_);
    for (int32_t i = 0; i < use.links; ++i)
      links.push_back(route_[static_cast<size_t>(*position++)]);
  }
}

}  // namespace orrery::lowering
