#include "cost_models/collectives/ring.h"

// Switches reduce and multicast. Within a node (NVLS) a rank has the switch reduce the parts that
// it is responsible for, and has it multicast the result: of an all-reduce each port carries
// size (1 + 1/k) both ways. Between nodes the fabric does the same (SHARP) for what each rank is
// responsible for; where only nodes reduce, rings go across. What follows each other overlaps.
// Parts and who is responsible for them are as in hierarchical.cc.

namespace orrery::cost_models {
namespace in_network_cc {
namespace {

class InNetwork {
 public:
  explicit InNetwork(const CollectiveCall& call)
      : call_(call),
        k_(call.ranks_a_node),
        rounds_{.kind = call.kind,
                .ranks = call.ranks,
                .ranks_a_node = call.ranks_a_node,
                .parts = call.ranks,
                .parts_a_size = call.ranks} {}

  Rounds Emit() {
    using enum CollectiveKind;
    const bool gathers = call_.kind != kReduceScatter;
    if (call_.kind != kAllGather) {
      if (k_ > 1) Within(/*to_switch=*/true, Whole(), true), Within(false, Mine(), false);
      if (call_.nodes() > 1) Across(true, gathers);
    }
    if (gathers) {
      if (call_.nodes() > 1) Across(false, true);
      if (k_ > 1) Within(true, Mine(), false), Within(false, Whole(), false);
    }
    rounds_.rounds.back().overlaps_next = false;
    return std::move(rounds_);
  }

 private:
  // Which parts a transfer of `rank` carries: all, or those that the rank is responsible for.
  struct Parts {
    bool whole = false;
  };
  static Parts Whole() { return {true}; }
  static Parts Mine() { return {false}; }

  Transfer Of(int32_t rank, Parts parts) const {
    Transfer transfer;
    transfer.first_part = parts.whole ? 0 : rank % k_;
    transfer.parts = parts.whole ? call_.ranks : call_.nodes();
    transfer.stride = parts.whole ? 1 : k_;
    return transfer;
  }

  Round& Overlapping() { return rounds_.rounds.emplace_back(Round{.overlaps_next = true}); }

  // Every rank to or from the switch of its node.
  void Within(bool to_switch, Parts parts, bool reduce) {
    Round& round = Overlapping();
    for (int32_t rank = 0; rank < call_.ranks; ++rank) {
      Transfer& transfer = round.transfers.emplace_back(Of(rank, parts));
      transfer.from = to_switch ? rank : Hub(rank / k_);
      transfer.to = to_switch ? Hub(rank / k_) : rank;
      transfer.reduce = reduce;
    }
  }

  // Between nodes: the reduction, or the way back. By the fabric the sum comes back to all at once.
  void Across(bool reduce, bool gathers) {
    if (call_.fabric_reduces) {
      if (reduce || call_.kind == CollectiveKind::kAllGather) ToFabric(reduce);
      if (!reduce || !gathers) FromFabric();
      return;
    }
    Round& round = rounds_.rounds.emplace_back(
        Round{.repeat = call_.nodes() - 1, .shift = -k_, .overlaps_next = true});
    for (int32_t local = 0; local < k_; ++local) {
      AppendSubRing({.first = local,
                     .stride = k_,
                     .count = call_.nodes(),
                     .first_part = local,
                     .part_stride = k_},
                    reduce, round);
    }
  }

  void ToFabric(bool reduce) {
    Round& round = Overlapping();
    for (int32_t rank = 0; rank < call_.ranks; ++rank) {
      Transfer& transfer = round.transfers.emplace_back(Of(rank, Mine()));
      if (!reduce) transfer.first_part = rank, transfer.parts = 1;
      transfer.from = rank;
      transfer.to = Hub(call_.nodes());
      transfer.reduce = reduce;
    }
  }

  void FromFabric() {
    Round& round = Overlapping();
    for (int32_t rank = 0; rank < call_.ranks; ++rank) {
      Transfer& transfer = round.transfers.emplace_back(Of(rank, Mine()));
      if (call_.kind == CollectiveKind::kReduceScatter) {
        transfer.first_part = rank, transfer.parts = 1;
      }
      transfer.from = Hub(call_.nodes());
      transfer.to = rank;
    }
  }

  const CollectiveCall& call_;
  int32_t k_;
  Rounds rounds_;
};

Rounds Emit(const CollectiveCall& call) { return InNetwork(call).Emit(); }

bool Supports(const CollectiveCall& call) {
  return call.ranks_a_node > 1 ? call.node_reduces : call.fabric_reduces;
}

}  // namespace
}  // namespace in_network_cc

extern const CollectiveAlgorithm kInNetworkCollective = {
    .name = "in-network",
    .summary = "switches reduce and multicast: within nodes, and across where the fabric can",
    .source = "Graham et al., SHARP, 2016; Klenk et al. 2020 (NVLS)",
    .kinds = {CollectiveKind::kAllReduce, CollectiveKind::kReduceScatter,
              CollectiveKind::kAllGather, CollectiveKind::kBarrier},
    .chosen = {CollectiveKind::kAllReduce, CollectiveKind::kReduceScatter,
               CollectiveKind::kAllGather},
    .supports = in_network_cc::Supports,
    .wanted = "switches that reduce in every node (or, with one rank a node, between nodes)",
    .rounds = in_network_cc::Emit,
};

}  // namespace orrery::cost_models
