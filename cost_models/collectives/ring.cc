#include "cost_models/collectives/ring.h"

#include <algorithm>

// A reduce-scatter is n-1 steps in which each rank sends a part of size/n to its successor; an
// all-gather is as many, an all-reduce both. Over several nodes of k ranks, k rings run at once
// that leave each node by different ranks, so that all network cards carry data:
//
//     ring 0: node 0 by rank 0 1 2 3, then node 1 by rank 3 2 1 0, …   (enters by the same rank)
//     ring 1: node 0 by rank 1 2 3 0, then node 1 by rank 0 3 2 1, …

namespace orrery::cost_models {
namespace ring_cc {
namespace {

RingOrder ChannelOrder(const CollectiveCall& call, int32_t channel) {
  RingOrder order;
  order.reserve(static_cast<size_t>(call.ranks));
  const int32_t k = call.ranks_a_node;
  for (int32_t node = 0; node < call.nodes(); ++node) {
    for (int32_t i = 0; i < k; ++i) {
      const int32_t step = node % 2 == 0 ? i : k - 1 - i;
      order.push_back(node * k + (channel + step) % k);
    }
  }
  return order;
}

// Rank r passes on what came from rank r-h+1 and goes further than to itself: n-h blocks in hop h.
Rounds AllToAll(int32_t n) {
  Rounds rounds{
      .kind = CollectiveKind::kAllToAll, .ranks = n, .parts = int64_t{n} * n, .parts_a_size = n};
  for (int32_t hop = 1; hop < n; ++hop) {
    Round& round = rounds.rounds.emplace_back();
    for (int32_t rank = 0; rank < n; ++rank) {
      const int64_t source = (rank - hop + 1 + n) % n, next = (rank + 1) % n;
      const int64_t count = n - hop, before_wrap = std::min<int64_t>(count, n - next);
      const auto to = static_cast<int32_t>(next);
      round.transfers.push_back(
          {.from = rank, .to = to, .first_part = source * n + next, .parts = before_wrap});
      if (before_wrap == count) continue;
      round.transfers.push_back(
          {.from = rank, .to = to, .first_part = source * n, .parts = count - before_wrap});
    }
  }
  return rounds;
}

// A chain from the root to the last rank or back, through which the tensor passes in chunks.
Rounds Chain(const CollectiveCall& call) {
  const bool reduce = call.kind == CollectiveKind::kReduce;
  const int64_t chunks = PipelineChunks(call, call.ranks - 2, 1);
  Rounds rounds{.kind = call.kind, .ranks = call.ranks, .parts = chunks, .parts_a_size = chunks};
  Round& round = rounds.rounds.emplace_back(
      Round{.repeat = chunks + call.ranks - 2, .shift = 1, .pipelined = true});
  for (int32_t i = 0; i + 1 < call.ranks; ++i) {
    const int32_t last = call.ranks - 1;
    round.transfers.push_back({.from = reduce ? last - i : i,
                               .to = reduce ? last - i - 1 : i + 1,
                               .first_part = -int64_t{i},
                               .reduce = reduce});
  }
  return rounds;
}

int32_t ChannelCount(const CollectiveCall& call) {
  return call.two_levels() ? call.ranks_a_node : 1;
}

bool HasRings(CollectiveKind kind) {
  return kind == CollectiveKind::kAllReduce || kind == CollectiveKind::kReduceScatter ||
         kind == CollectiveKind::kAllGather;
}

Rounds Emit(const CollectiveCall& call) {
  switch (call.kind) {
    case CollectiveKind::kAllToAll:
      return AllToAll(call.ranks);
    case CollectiveKind::kBroadcast:
    case CollectiveKind::kReduce:
      return Chain(call);
    default:
      return RingRounds(call.kind, RingChannels(call));
  }
}

Rounds Merged(const CollectiveCall& call) {
  return HasRings(call.kind) ? MergedRingRounds(call, /*both_ways=*/false) : Emit(call);
}

bool Supports(const CollectiveCall& call) {
  return call.kind != CollectiveKind::kAllToAll ||
         int64_t{call.ranks} * call.ranks <= kMaxTransfersARound;
}

}  // namespace
}  // namespace ring_cc

std::vector<RingOrder> RingChannels(const CollectiveCall& call) {
  std::vector<RingOrder> orders;
  for (int32_t channel = 0; channel < ring_cc::ChannelCount(call); ++channel) {
    orders.push_back(ring_cc::ChannelOrder(call, channel));
  }
  return orders;
}

void AppendSubRing(const SubRing& ring, bool reduce, Round& round) {
  for (int32_t i = 0; i < ring.count; ++i) {
    const int32_t next = (i + 1) % ring.count;
    // What a rank is responsible for arrives in the last step of a reduce-scatter.
    const int32_t part = reduce ? (i + ring.count - 1) % ring.count : i;
    round.transfers.push_back({.from = ring.first + i * ring.stride,
                               .to = ring.first + next * ring.stride,
                               .first_part = ring.first_part + part * ring.part_stride,
                               .parts = ring.parts,
                               .stride = ring.stride_within,
                               .reduce = reduce});
  }
}

Rounds RingRounds(CollectiveKind kind, std::span<const RingOrder> orders) {
  const auto n = static_cast<int32_t>(orders[0].size());
  const auto channels = static_cast<int64_t>(orders.size());
  // Parts of one channel are `channels` apart, so that a step moves on within the channel.
  Rounds rounds{.kind = kind, .ranks = n, .parts = n * channels, .parts_a_size = n * channels};
  rounds.owners.resize(static_cast<size_t>(rounds.parts));
  for (const bool reduce : {true, false}) {
    if (kind == (reduce ? CollectiveKind::kAllGather : CollectiveKind::kReduceScatter)) continue;
    Round& round = rounds.rounds.emplace_back(Round{.repeat = n - 1, .shift = -channels});
    for (int64_t channel = 0; channel < channels; ++channel) {
      const RingOrder& order = orders[static_cast<size_t>(channel)];
      for (int32_t i = 0; i < n; ++i) {
        const auto at = [&](int32_t position) { return order[static_cast<size_t>(position % n)]; };
        const int64_t part = reduce ? (i + n - 1) % n : i;
        rounds.owners[static_cast<size_t>(i * channels + channel)] = at(i);
        round.transfers.push_back({.from = at(i),
                                   .to = at(i + 1),
                                   .first_part = part * channels + channel,
                                   .reduce = reduce});
      }
    }
  }
  return rounds;
}

Rounds MergedRingRounds(const CollectiveCall& call, bool both_ways) {
  const int32_t channels = ring_cc::ChannelCount(call);
  const int32_t rings = both_ways ? 2 * channels : channels;
  MessageCounter counter(call.ranks);
  for (int32_t ring = 0; ring < rings; ++ring) {
    RingOrder order = ring_cc::ChannelOrder(call, ring % channels);
    if (ring >= channels) std::reverse(order.begin(), order.end());
    for (size_t i = 1; i < order.size(); ++i) counter.Add(order[i - 1], order[i]);
    counter.Add(order.back(), order.front());
  }
  Rounds rounds{.kind = call.kind, .ranks = call.ranks};
  rounds.parts = rounds.parts_a_size = int64_t{call.ranks} * rings;
  for (const bool reduce : {true, false}) {
    if (call.kind == (reduce ? CollectiveKind::kAllGather : CollectiveKind::kReduceScatter))
      continue;
    Round& round = rounds.rounds.emplace_back(
        Round{.repeat = call.ranks - 1, .shift = -rings, .transfers = counter.messages()});
    for (Transfer& transfer : round.transfers) transfer.reduce = reduce;
  }
  return rounds;
}

extern const CollectiveAlgorithm kRingCollective = {
    .name = "ring",
    .summary =
        "n-1 steps of size/n to the next rank, twice as many for an all-reduce; one ring for "
        "each network card of a node",
    .source = "Patarasuk & Yuan 2009",
    .kinds = {CollectiveKind::kAllReduce, CollectiveKind::kReduceScatter,
              CollectiveKind::kAllGather, CollectiveKind::kAllToAll, CollectiveKind::kBroadcast,
              CollectiveKind::kReduce},
    .chosen = {CollectiveKind::kAllReduce, CollectiveKind::kReduceScatter,
               CollectiveKind::kAllGather, CollectiveKind::kBroadcast, CollectiveKind::kReduce},
    .supports = ring_cc::Supports,
    .wanted = "at most 1024 ranks for an all-to-all",
    .rounds = ring_cc::Emit,
    .merged = ring_cc::Merged,
};

}  // namespace orrery::cost_models
