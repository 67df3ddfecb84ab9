#include "cost_models/collectives/ring.h"

// Every ring of ring.cc twice, in opposite directions, each with half of the data: where a rank has
// a link to each of its neighbours, both carry data both ways.

namespace orrery::cost_models {
namespace bidirectional_ring_cc {
namespace {

Rounds Emit(const CollectiveCall& call) {
  std::vector<RingOrder> orders = RingChannels(call);
  for (size_t channel = 0, channels = orders.size(); channel < channels; ++channel) {
    orders.emplace_back(orders[channel].rbegin(), orders[channel].rend());
  }
  return RingRounds(call.kind, orders);
}

Rounds Merged(const CollectiveCall& call) { return MergedRingRounds(call, /*both_ways=*/true); }

// Over nodes with switches the rings of ring.cc load all links both ways as it is, and pricing
// twice as many takes twice as long.
bool IsWorthwhile(const CollectiveCall& call) { return !call.two_levels() || !call.grid.empty(); }

}  // namespace
}  // namespace bidirectional_ring_cc

extern const CollectiveAlgorithm kBidirectionalRingCollective = {
    .name = "bidirectional-ring",
    .summary =
        "two rings in opposite directions, each with half of the data; for each network "
        "card of a node",
    .source = "Jain & Sabharwal 2010 (optimal bucket algorithms on tori), one dimension",
    .kinds = {CollectiveKind::kAllReduce, CollectiveKind::kReduceScatter,
              CollectiveKind::kAllGather},
    .chosen = {CollectiveKind::kAllReduce, CollectiveKind::kReduceScatter,
               CollectiveKind::kAllGather},
    .worthwhile = bidirectional_ring_cc::IsWorthwhile,
    .rounds = bidirectional_ring_cc::Emit,
    .merged = bidirectional_ring_cc::Merged,
};

}  // namespace orrery::cost_models
