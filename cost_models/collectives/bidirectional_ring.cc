#include <algorithm>
#include <numeric>

#include "cost_models/collectives/ring.h"

// Two rings in opposite directions, each with half of the data: where a rank has a link to each of
// its neighbours, both carry data both ways.

namespace orrery::cost_models {
namespace {

Rounds Emit(const CollectiveCall& call) {
  RingOrder forward(static_cast<size_t>(call.ranks));
  std::iota(forward.begin(), forward.end(), 0);
  const RingOrder orders[] = {forward, RingOrder(forward.rbegin(), forward.rend())};
  return RingRounds(call.kind, orders);
}

}  // namespace

extern const CollectiveAlgorithm kBidirectionalRingCollective = {
    .name = "bidirectional-ring",
    .summary = "two rings in opposite directions, each with half of the data",
    .source = "Jain & Sabharwal 2010 (optimal bucket algorithms on tori), one dimension",
    .kinds = {CollectiveKind::kAllReduce, CollectiveKind::kReduceScatter,
              CollectiveKind::kAllGather},
    .chosen = {CollectiveKind::kAllReduce, CollectiveKind::kReduceScatter,
               CollectiveKind::kAllGather},
    .rounds = Emit,
};

}  // namespace orrery::cost_models
