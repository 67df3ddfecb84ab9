#include <algorithm>

#include "cost_models/collectives/collective_algorithm.h"

// A binomial tree: in round i, 2^i ranks have the data and each passes it on to one that is half as
// far away as in the round before. Reduce and gather are the same backwards; an all-reduce is a
// reduce and a broadcast.

namespace orrery::cost_models {
namespace minimum_spanning_tree_cc {
namespace {

// Rank r of the tree sends down to r + distance, all parts or those of the ranks below it.
void AppendLevel(Rounds& rounds, int32_t distance, bool up, bool reduce) {
  Round& round = rounds.rounds.emplace_back();
  const int32_t n = rounds.ranks;
  for (int32_t parent = 0; parent + distance < n; parent += 2 * distance) {
    const int32_t child = parent + distance;
    const int32_t below = std::min(distance, n - child);
    round.transfers.push_back({.from = up ? child : parent,
                               .to = up ? parent : child,
                               .first_part = rounds.parts == 1 ? 0 : child,
                               .parts = rounds.parts == 1 ? 1 : below,
                               .reduce = reduce});
  }
}

void AppendDown(Rounds& rounds) {
  int32_t distance = 1;
  while (distance * 2 < rounds.ranks) distance *= 2;
  for (; distance >= 1; distance /= 2) AppendLevel(rounds, distance, false, false);
}

void AppendUp(Rounds& rounds, bool reduce) {
  for (int32_t distance = 1; distance < rounds.ranks; distance *= 2) {
    AppendLevel(rounds, distance, true, reduce);
  }
}

Rounds Emit(const CollectiveCall& call) {
  using enum CollectiveKind;
  const bool parted = call.kind == kScatter || call.kind == kGather;
  const int64_t parts = parted ? call.ranks : 1;
  Rounds rounds{.kind = call.kind, .ranks = call.ranks, .parts = parts, .parts_a_size = parts};
  const bool up = call.kind != kBroadcast && call.kind != kScatter;
  if (up) AppendUp(rounds, !parted);
  if (call.kind != kReduce && call.kind != kGather) AppendDown(rounds);
  return rounds;
}

// Libraries have it for barriers alone. Where there is none, its few steps may be the best for
// short messages.
bool IsWorthwhile(const CollectiveCall& call) {
  return call.kind == CollectiveKind::kBarrier || !call.by_library;
}

}  // namespace
}  // namespace minimum_spanning_tree_cc

extern const CollectiveAlgorithm kMinimumSpanningTreeCollective = {
    .name = "minimum-spanning-tree",
    .summary = "a binomial tree of ceil(log2 n) rounds, each over half the distance",
    .source = "Chan et al. 2007, section 3",
    .kinds = {CollectiveKind::kAllReduce, CollectiveKind::kBroadcast, CollectiveKind::kReduce,
              CollectiveKind::kScatter, CollectiveKind::kGather, CollectiveKind::kBarrier},
    .chosen = {CollectiveKind::kAllReduce, CollectiveKind::kBroadcast, CollectiveKind::kReduce,
               CollectiveKind::kScatter, CollectiveKind::kGather, CollectiveKind::kBarrier},
    .worthwhile = minimum_spanning_tree_cc::IsWorthwhile,
    .rounds = minimum_spanning_tree_cc::Emit,
};

}  // namespace orrery::cost_models
