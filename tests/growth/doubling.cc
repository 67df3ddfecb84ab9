#include <bit>

#include "cost_models/collectives/collective_algorithm.h"

// Ranks exchange with partners at distance 1, 2, 4, …: ceil(log2 n) steps. Of an all-reduce each
// step moves the whole tensor; of an all-gather the steps together move what the rank lacks.

namespace orrery::cost_models {
namespace {

Duration Time(const CollectiveCall& call) {
  const auto steps = static_cast<int64_t>(std::bit_width(static_cast<uint64_t>(call.ranks - 1)));
  const Duration latency = call.ring.latency * steps;
  if (call.kind == CollectiveKind::kAllReduce) {
    return latency + TransferTime(call.size, steps, 1, call.ring.rate);
  }
  return latency + TransferTime(call.size, call.ranks - 1, call.ranks, call.ring.rate);
}

}  // namespace

extern const CollectiveAlgorithm kDoublingCollective = {
    .name = "doubling",
    .summary = "ceil(log2 n) exchanges with partners at doubling distance",
    .source = "Thakur, Rabenseifner & Gropp 2005, section 4",
    .time = Time,
};

}  // namespace orrery::cost_models
