#include "cost_models/collectives/ring.h"

// By level: a reduce-scatter within each node, a ring across the nodes for each rank of a node, an
// all-gather within. Within are rings, or direct exchange where all are linked. Each rank's network
// card carries 1/k of the data; within nodes go all. Part j*k + l is that of rank l of node j. Rank
// l is responsible for those of all nodes.

namespace orrery::cost_models {
namespace hierarchical_cc {
namespace {

enum class Level : uint8_t { kWithin, kAcross };

// Where any two ranks of a node are linked: each sends to each what that one is responsible for, or
// what it is responsible for itself.
void AppendExchange(const CollectiveCall& call, bool reduce, Rounds& rounds) {
  const int32_t k = call.ranks_a_node;
  Round& round = rounds.rounds.emplace_back();
  for (int32_t rank = 0; rank < call.ranks; ++rank) {
    const int32_t first = rank / k * k, local = rank % k;
    for (int32_t away = 1; away < k; ++away) {
      const int32_t other = (local + away) % k;
      round.transfers.push_back({.from = rank,
                                 .to = first + other,
                                 .first_part = reduce ? other : local,
                                 .parts = call.nodes(),
                                 .stride = k,
                                 .reduce = reduce});
    }
  }
}

// All rings of one level at once.
void AppendLevel(const CollectiveCall& call, Level level, bool reduce, Rounds& rounds) {
  const int32_t k = call.ranks_a_node, nodes = call.nodes();
  if (level == Level::kWithin && call.linked) {
    AppendExchange(call, reduce, rounds);
    return;
  }
  Round round;
  if (level == Level::kWithin) {
    round.repeat = k - 1;
    round.shift = -1;
    for (int32_t node = 0; node < nodes; ++node) {
      AppendSubRing({.first = node * k, .count = k, .parts = nodes, .stride_within = k}, reduce,
                    round);
    }
  } else {
    round.repeat = nodes - 1;
    round.shift = -k;
    for (int32_t local = 0; local < k; ++local) {
      AppendSubRing(
          {.first = local, .stride = k, .count = nodes, .first_part = local, .part_stride = k},
          reduce, round);
    }
  }
  rounds.rounds.push_back(std::move(round));
}

Rounds Emit(const CollectiveCall& call) {
  Rounds rounds{
      .kind = call.kind, .ranks = call.ranks, .parts = call.ranks, .parts_a_size = call.ranks};
  if (call.kind != CollectiveKind::kAllGather) {
    AppendLevel(call, Level::kWithin, true, rounds);
    AppendLevel(call, Level::kAcross, true, rounds);
  }
  if (call.kind != CollectiveKind::kReduceScatter) {
    AppendLevel(call, Level::kAcross, false, rounds);
    AppendLevel(call, Level::kWithin, false, rounds);
  }
  return rounds;
}

bool Supports(const CollectiveCall& call) { return call.two_levels(); }

}  // namespace
}  // namespace hierarchical_cc

extern const CollectiveAlgorithm kHierarchicalCollective = {
    .name = "hierarchical",
    .summary = "reduce-scatter within the node, rings across, all-gather within the node",
    .source = "Jia et al. 2018; Cho et al., BlueConnect, 2019",
    .kinds = {CollectiveKind::kAllReduce, CollectiveKind::kReduceScatter,
              CollectiveKind::kAllGather},
    .chosen = {CollectiveKind::kAllReduce, CollectiveKind::kReduceScatter,
               CollectiveKind::kAllGather},
    .worthwhile = [](const CollectiveCall& call) { return call.linked; },
    .supports = hierarchical_cc::Supports,
    .wanted = "several nodes of several ranks, equally many of each node, node by node",
    .rounds = hierarchical_cc::Emit,
};

}  // namespace orrery::cost_models
