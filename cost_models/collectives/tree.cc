#include <algorithm>
#include <vector>

#include "cost_models/collectives/collective_algorithm.h"
#include "cost_models/collectives/ring.h"

// Two binary trees over all nodes; a node that is inside one is a leaf of the other, so each sends
// and receives about the same. Each tree reduces half of the data to its root and sends the result
// back down, in chunks, so that all levels work at the same time. Within a node ranks are a chain,
// of which the first is in the tree. Each rank of a node is the first of a chain of its own, with
// two trees and an equal part of the data: so all network cards carry data. Where no nodes can be
// told apart, every rank is one; and in one node, unless a communication library does it.

namespace orrery::cost_models {
namespace tree_cc {
namespace {

// In-order numbering: the lowest set bit of a rank is its height. Parent of `rank` in a tree whose
// root is 0, of one child.
int32_t Parent(int32_t rank, int32_t n) {
  const int32_t bit = rank & -rank;
  const int32_t beyond = (rank ^ bit) | (bit << 1);
  return beyond < n ? beyond : rank ^ bit;
}

std::vector<int32_t> Depths(int32_t n) {
  std::vector<int32_t> depths(static_cast<size_t>(n), 0);
  for (int32_t rank = 1; rank < n; ++rank) {
    for (int32_t above = rank; above != 0; above = Parent(above, n)) {
      ++depths[static_cast<size_t>(rank)];
    }
  }
  return depths;
}

// The rank that stands at position `position` of the tree. The second is the first mirrored or, as
// an odd number of ranks has its leaves on its own mirror image, moved by one.
int32_t RankAt(int32_t position, int32_t tree, int32_t n) {
  if (tree == 0) return position;
  return n % 2 == 0 ? n - 1 - position : (position + 1) % n;
}

// All trees of a call.
class Trees {
 public:
  explicit Trees(const CollectiveCall& call)
      : k_(call.two_levels() || call.by_library ? call.ranks_a_node : 1), nodes_(call.ranks / k_) {
    depths_ = Depths(nodes_);
    depth_ = *std::max_element(depths_.begin(), depths_.end());
    // All ranks of a node lead a chain, unless there were too many transfers.
    chains_ = static_cast<int32_t>(
        std::clamp<int64_t>(kMaxTransfersARound / (4 * int64_t{call.ranks}), 1, k_));
  }

  int32_t count() const { return 2 * chains_; }
  /// Whether each rank of a node does what each other does, for another pair of trees.
  bool all_lead() const { return chains_ == k_; }
  /// Rounds that one chunk takes: up and down.
  int64_t length() const { return 2 * (depth_ + k_ - 1); }
  /// The transfers of a chunk of all trees.
  size_t transfer_count() const {
    const auto of_chains = static_cast<size_t>(2 * (k_ - 1)) * static_cast<size_t>(nodes_);
    return static_cast<size_t>(count()) * (of_chains + static_cast<size_t>(2 * (nodes_ - 1)));
  }

  /// Calls `visit(at, transfer)` for each transfer of chunk 0 of the first `trees`, which passes
  /// through it in round `at`. With `few`, the two trees of a chain make one transfer of its hops.
  template <typename Visit>
  void ForEachPassage(int32_t trees, bool few, Visit visit) const {
    for (int32_t tree = 0; tree < trees; ++tree) {
      const int32_t chains = few ? 2 - tree % 2 * 2 : 1;
      for (int32_t node = 0; node < (chains > 0 ? nodes_ : 0); ++node) {
        PassChain(tree, node, [&](int64_t at, Transfer transfer) {
          transfer.parts = transfer.messages = chains;
          visit(at, transfer);
        });
      }
      for (int32_t position = 1; position < nodes_; ++position) PassEdge(tree, position, visit);
    }
  }

 private:
  static Transfer Of(int32_t tree, int32_t from, int32_t to, bool reduce) {
    return {.from = from, .to = to, .first_part = tree, .reduce = reduce};
  }

  // The ranks of a node in turn, beginning with the one that leads the chain of a tree.
  template <typename Visit>
  void PassChain(int32_t tree, int32_t node, Visit visit) const {
    const int32_t first = node * k_, end = first + k_;
    int32_t upper = first + tree / 2;
    for (int32_t i = 1; i < k_; ++i) {
      const int32_t lower = upper + 1 == end ? first : upper + 1;
      visit(k_ - 1 - i, Of(tree, lower, upper, true));
      visit(length() - k_ + i, Of(tree, upper, lower, false));
      upper = lower;
    }
  }

  template <typename Visit>
  void PassEdge(int32_t tree, int32_t position, Visit visit) const {
    const auto head = [&](int32_t at) { return RankAt(at, tree % 2, nodes_) * k_ + tree / 2; };
    const int32_t child = head(position), parent = head(Parent(position, nodes_));
    const int64_t level = depths_[static_cast<size_t>(position)];
    visit(k_ - 1 + depth_ - level, Of(tree, child, parent, true));
    visit(k_ - 1 + depth_ + level - 1, Of(tree, parent, child, false));
  }

  int32_t k_;      // ranks of a node
  int32_t nodes_;  // positions of a tree
  std::vector<int32_t> depths_;
  int64_t depth_ = 0;
  int32_t chains_ = 1;
};

// Each chunk follows the one before: all transfers in every round, but while it fills and drains.
Round Pipeline(const Trees& trees, int64_t chunks) {
  return {.repeat = chunks + trees.length() - 1, .shift = trees.count(), .pipelined = true};
}

// Those of the first trees.
std::vector<Transfer> Pipelined(const Trees& trees, int32_t count) {
  std::vector<Transfer> transfers;
  transfers.reserve(trees.transfer_count() / static_cast<size_t>(trees.count()) *
                    static_cast<size_t>(count));
  trees.ForEachPassage(count, /*few=*/false, [&](int64_t at, Transfer transfer) {
    transfer.first_part -= at * trees.count();
    transfers.push_back(transfer);
  });
  return transfers;
}

// One chunk: each round has its own transfers, so that hops within a node cost no more than that.
void AppendOnePass(const Trees& trees, bool few, Rounds& rounds) {
  rounds.rounds.resize(static_cast<size_t>(trees.length()));
  trees.ForEachPassage(trees.count(), few, [&](int64_t at, const Transfer& transfer) {
    rounds.rounds[static_cast<size_t>(at)].transfers.push_back(transfer);
  });
}

// `few`: as it is to be priced. A chunk of each tree passes in every round, so of what goes from
// one rank to another as many as trees; and in which round is the same of all ranks of a node.
Rounds RoundsOf(const CollectiveCall& call, bool few) {
  const Trees trees(call);
  // By its network card a rank sends four parts in a repetition: up and twice down, and up.
  const int64_t chunks =
      PipelineChunks(call, trees.length() - 1, 4.0 / static_cast<double>(trees.count()));
  Rounds rounds{.kind = call.kind, .ranks = call.ranks};
  rounds.parts = rounds.parts_a_size = trees.count() * chunks;
  if (chunks == 1) {
    AppendOnePass(trees, few, rounds);
    return rounds;
  }
  Round& round = rounds.rounds.emplace_back(Pipeline(trees, chunks));
  if (!few || (call.by_library && !trees.all_lead())) {
    round.transfers = Pipelined(trees, trees.count());
    return rounds;
  }
  MessageCounter counter(call.ranks);
  trees.ForEachPassage(trees.count(), few, [&](int64_t, const Transfer& transfer) {
    counter.Add(transfer.from, transfer.to, transfer.messages);
  });
  round.transfers = counter.messages();
  // Without a library nobody counts steps.
  if (call.by_library) round.paced = Pipelined(trees, 2);
  return rounds;
}

Rounds Emit(const CollectiveCall& call) { return RoundsOf(call, /*few=*/false); }
Rounds Merged(const CollectiveCall& call) { return RoundsOf(call, /*few=*/true); }

}  // namespace
}  // namespace tree_cc

extern const CollectiveAlgorithm kTreeCollective = {
    .name = "tree",
    .summary =
        "two binary trees over nodes, each for half of the data, up and down in chunks; chains "
        "within nodes; for each network card of a node",
    .source = "Sanders, Speck & Träff 2009; NCCL 2.4 (trees over nodes, chains within)",
    .kinds = {CollectiveKind::kAllReduce, CollectiveKind::kBarrier},
    .chosen = {CollectiveKind::kAllReduce},
    .rounds = tree_cc::Emit,
    .merged = tree_cc::Merged,
};

}  // namespace orrery::cost_models
