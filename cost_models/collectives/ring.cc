#include "cost_models/collectives/collective_algorithm.h"

// Each rank sends size/n to its successor in every step, and all do so at once. An all-gather is
// n-1 such steps; an all-reduce is a reduce-scatter of n-1 steps and then an all-gather.

namespace orrery::cost_models {
namespace {

Duration Time(const CollectiveCall& call) {
  const int64_t rounds = call.kind == CollectiveKind::kAllReduce ? 2 : 1;
  const int64_t steps = rounds * (call.ranks - 1);
  return TransferTime(call.size, steps, call.ranks, call.ring.rate) + call.ring.latency * steps;
}

}  // namespace

extern const CollectiveAlgorithm kRingCollective = {
    .name = "ring",
    .summary = "n-1 steps of size/n to the next rank; twice as many for an all-reduce",
    .source = "Patarasuk & Yuan 2009",
    .time = Time,
};

}  // namespace orrery::cost_models
