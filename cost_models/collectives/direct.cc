#include "cost_models/collectives/collective_algorithm.h"

// Every rank sends to all that need what it has, all at once: one round, of an all-reduce two.

namespace orrery::cost_models {
namespace direct_cc {
namespace {

// From each rank to each other; part_of(from, to) is what goes.
template <typename PartOf>
void AppendPairs(Rounds& rounds, bool reduce, PartOf part_of) {
  Round& round = rounds.rounds.emplace_back();
  const int32_t n = rounds.ranks;
  round.transfers.reserve(static_cast<size_t>(n) * static_cast<size_t>(n - 1));
  for (int32_t from = 0; from < n; ++from) {
    ForEachOther(from, n, [&](int32_t to) {
      round.transfers.push_back(
          {.from = from, .to = to, .first_part = part_of(from, to), .reduce = reduce});
    });
  }
}

// Between the root and each other rank.
void AppendStar(Rounds& rounds, bool to_root, bool reduce) {
  Round& round = rounds.rounds.emplace_back();
  for (int32_t rank = 1; rank < rounds.ranks; ++rank) {
    round.transfers.push_back({.from = to_root ? rank : 0,
                               .to = to_root ? 0 : rank,
                               .first_part = rounds.parts == 1 ? 0 : rank,
                               .reduce = reduce});
  }
}

Rounds Emit(const CollectiveCall& call) {
  using enum CollectiveKind;
  const int32_t n = call.ranks;
  Rounds rounds{.kind = call.kind, .ranks = n, .parts = n, .parts_a_size = n};
  const auto sender = [](int32_t from, int32_t) { return from; };
  const auto receiver = [](int32_t, int32_t to) { return to; };
  switch (call.kind) {
    case kAllReduce:
    case kReduceScatter:
      AppendPairs(rounds, true, receiver);
      if (call.kind == kAllReduce) AppendPairs(rounds, false, sender);
      break;
    case kAllGather:
      AppendPairs(rounds, false, sender);
      break;
    case kAllToAll:
      rounds.parts = int64_t{n} * n;
      AppendPairs(rounds, false, [n](int64_t from, int32_t to) { return from * n + to; });
      break;
    case kBarrier:
      rounds.parts = rounds.parts_a_size = 1;
      AppendPairs(rounds, true, [](int32_t, int32_t) { return 0; });
      break;
    case kSendReceive: {
      rounds.parts_a_size = 1;
      Round& round = rounds.rounds.emplace_back();
      for (int32_t rank = 0; rank < n; ++rank) {
        round.transfers.push_back({.from = rank, .to = (rank + 1) % n, .first_part = rank});
      }
      break;
    }
    case kBroadcast:
    case kReduce:
      rounds.parts = rounds.parts_a_size = 1;
      [[fallthrough]];
    case kScatter:
    case kGather:
      AppendStar(rounds, call.kind == kReduce || call.kind == kGather, call.kind == kReduce);
      break;
  }
  return rounds;
}

// Which parts they are does not matter to the price.
Rounds Merged(const CollectiveCall& call) {
  using enum CollectiveKind;
  const int32_t n = call.ranks;
  Rounds rounds{.kind = call.kind, .ranks = n, .parts = n, .parts_a_size = n};
  const bool twice = call.kind == kAllReduce;
  if (call.kind == kAllToAll) rounds.parts = int64_t{n} * n;
  if (call.kind == kBarrier) rounds.parts = rounds.parts_a_size = 1;
  const bool pairs = twice || call.kind == kReduceScatter || call.kind == kAllGather ||
                     call.kind == kAllToAll || call.kind == kBarrier;
  if (!pairs) return Emit(call);
  rounds.rounds.assign(twice ? 2 : 1, Round{.all_pairs = true});
  return rounds;
}

bool Supports(const CollectiveCall& call) {
  return GetCollectiveKind(call.kind).has_root ||
         int64_t{call.ranks} * call.ranks <= kMaxTransfersARound;
}

// Of tensors only where every pair has its link, as RCCL does on xGMI: behind a switch libraries
// keep to rings and trees. Links without latency are of an ideal cluster (uniform:…), where a rate
// stands for whatever joins the devices and everybody reckons with rings.
bool IsWorthwhile(const CollectiveCall& call) {
  const bool tensor = call.kind == CollectiveKind::kAllReduce ||
                      call.kind == CollectiveKind::kAllGather ||
                      call.kind == CollectiveKind::kReduceScatter;
  return !tensor || (call.linked && !call.two_levels() && call.hop.latency > Duration(0));
}

}  // namespace
}  // namespace direct_cc

extern const CollectiveAlgorithm kDirectCollective = {
    .name = "direct",
    .summary = "every rank sends to all that need what it has, all at once",
    .source = "Chan et al. 2007; what NCCL does for all-to-all, scatter, gather, send and receive",
    .kinds = {CollectiveKind::kAllReduce, CollectiveKind::kAllGather,
              CollectiveKind::kReduceScatter, CollectiveKind::kAllToAll, CollectiveKind::kBroadcast,
              CollectiveKind::kReduce, CollectiveKind::kScatter, CollectiveKind::kGather,
              CollectiveKind::kSendReceive, CollectiveKind::kBarrier},
    .chosen = {CollectiveKind::kAllReduce, CollectiveKind::kAllGather,
               CollectiveKind::kReduceScatter, CollectiveKind::kAllToAll, CollectiveKind::kScatter,
               CollectiveKind::kGather, CollectiveKind::kSendReceive},
    .worthwhile = direct_cc::IsWorthwhile,
    .supports = direct_cc::Supports,
    .wanted = "at most 1024 ranks where all send to all",
    .rounds = direct_cc::Emit,
    .merged = direct_cc::Merged,
};

}  // namespace orrery::cost_models
