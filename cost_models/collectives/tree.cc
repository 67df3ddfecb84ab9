#include <algorithm>
#include <vector>

#include "cost_models/collectives/collective_algorithm.h"

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

// A transfer and when chunk 0 passes through it.
struct Passage {
  int64_t at = 0;
  Transfer transfer = {};
};

class Trees {
 public:
  explicit Trees(const CollectiveCall& call)
      : k_(call.two_levels() || call.by_library ? call.ranks_a_node : 1), nodes_(call.ranks / k_) {
    depths_ = Depths(nodes_);
    depth_ = *std::max_element(depths_.begin(), depths_.end());
    // All ranks of a node lead a chain, unless there were too many transfers.
    chains_ = static_cast<int32_t>(
        std::clamp<int64_t>(kMaxTransfersARound / (4 * int64_t{call.ranks}), 1, k_));
    for (int32_t tree = 0; tree < 2 * chains_; ++tree) {
      for (int32_t node = 0; node < nodes_; ++node) AppendChain(tree, node);
      for (int32_t position = 1; position < nodes_; ++position) AppendEdge(tree, position);
    }
  }

  int64_t count() const { return 2 * chains_; }
  /// Rounds that one chunk takes: up and down.
  int64_t length() const { return 2 * (depth_ + k_ - 1); }
  const std::vector<Passage>& passages() const { return passages_; }

 private:
  // Rank number `i` of the chain of a tree through a node.
  int32_t RankOf(int32_t tree, int32_t node, int32_t i) const {
    return node * k_ + (tree / 2 + i) % k_;
  }

  void Append(int64_t at, int32_t tree, int32_t from, int32_t to, bool reduce) {
    passages_.push_back({at, {.from = from, .to = to, .first_part = tree, .reduce = reduce}});
  }

  void AppendChain(int32_t tree, int32_t node) {
    for (int32_t i = 1; i < k_; ++i) {
      const int32_t upper = RankOf(tree, node, i - 1), lower = RankOf(tree, node, i);
      Append(k_ - 1 - i, tree, lower, upper, true);
      Append(length() - k_ + i, tree, upper, lower, false);
    }
  }

  void AppendEdge(int32_t tree, int32_t position) {
    const auto head = [&](int32_t at) { return RankOf(tree, RankAt(at, tree % 2, nodes_), 0); };
    const int32_t child = head(position), parent = head(Parent(position, nodes_));
    const int64_t level = depths_[static_cast<size_t>(position)];
    Append(k_ - 1 + depth_ - level, tree, child, parent, true);
    Append(k_ - 1 + depth_ + level - 1, tree, parent, child, false);
  }

  int32_t k_;      // ranks of a node
  int32_t nodes_;  // positions of a tree
  std::vector<int32_t> depths_;
  int64_t depth_ = 0;
  int32_t chains_ = 1;
  std::vector<Passage> passages_;
};

// Each chunk follows the one before: all transfers in every round, but while it fills and drains.
void AppendPipeline(const Trees& trees, int64_t chunks, Rounds& rounds) {
  Round& round = rounds.rounds.emplace_back(
      Round{.repeat = chunks + trees.length() - 1, .shift = trees.count(), .pipelined = true});
  for (const auto& [at, transfer] : trees.passages()) {
    round.transfers.push_back(transfer);
    round.transfers.back().first_part -= at * trees.count();
  }
}

// One chunk: each round has its own transfers, so that hops within a node cost no more than that.
void AppendOnePass(const Trees& trees, Rounds& rounds) {
  rounds.rounds.resize(static_cast<size_t>(trees.length()));
  for (const auto& [at, transfer] : trees.passages()) {
    rounds.rounds[static_cast<size_t>(at)].transfers.push_back(transfer);
  }
}

Rounds Emit(const CollectiveCall& call) {
  const Trees trees(call);
  // By its network card a rank sends four parts in a repetition: up and twice down, and up.
  const int64_t chunks =
      PipelineChunks(call, trees.length() - 1, 4.0 / static_cast<double>(trees.count()));
  Rounds rounds{.kind = call.kind, .ranks = call.ranks};
  rounds.parts = rounds.parts_a_size = trees.count() * chunks;
  if (chunks > 1) {
    AppendPipeline(trees, chunks, rounds);
  } else {
    AppendOnePass(trees, rounds);
  }
  return rounds;
}

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
};

}  // namespace orrery::cost_models
