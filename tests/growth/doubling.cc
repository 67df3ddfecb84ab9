#include "cost_models/collectives/collective_algorithm.h"

// Ranks exchange all they have with partners at distance 1, 2, 4, …: log2 n rounds, each of which
// moves the whole tensor. For short messages, and powers of two.

namespace orrery::cost_models {
namespace doubling_cc {
namespace {

Rounds Emit(const CollectiveCall& call) {
  Rounds rounds{.kind = call.kind, .ranks = call.ranks};
  for (int32_t distance = 1; distance < call.ranks; distance *= 2) {
    Round& round = rounds.rounds.emplace_back();
    for (int32_t rank = 0; rank < call.ranks; ++rank) {
      round.transfers.push_back({.from = rank, .to = rank ^ distance, .reduce = true});
    }
  }
  return rounds;
}

bool Supports(const CollectiveCall& call) { return (call.ranks & (call.ranks - 1)) == 0; }

}  // namespace
}  // namespace doubling_cc

extern const CollectiveAlgorithm kDoublingCollective = {
    .name = "doubling",
    .summary = "log2 n exchanges of the whole tensor with partners at doubling distance",
    .source = "Thakur, Rabenseifner & Gropp 2005, section 4",
    .kinds = {CollectiveKind::kAllReduce, CollectiveKind::kBarrier},
    .chosen = {CollectiveKind::kAllReduce},
    .supports = doubling_cc::Supports,
    .wanted = "2, 4, 8, 16, … ranks",
    .rounds = doubling_cc::Emit,
};

}  // namespace orrery::cost_models
