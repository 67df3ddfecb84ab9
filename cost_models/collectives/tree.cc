#include <algorithm>
#include <vector>

#include "cost_models/collectives/collective_algorithm.h"

// Two binary trees over all ranks; a rank that is inside one is a leaf of the other, so each sends
// and receives about the same. Each tree reduces half of the data to its root and sends the result
// back down, in chunks, so that all levels work at the same time.

namespace orrery::cost_models {
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

// The rank that stands at place `place` of the tree. The second is the first mirrored or, as an odd
// number of ranks has its leaves on its own mirror image, moved by one.
int32_t RankAt(int32_t place, int32_t tree, int32_t n) {
  if (tree == 0) return place;
  return n % 2 == 0 ? n - 1 - place : (place + 1) % n;
}

Rounds Emit(const CollectiveCall& call) {
  const int32_t n = call.ranks;
  const std::vector<int32_t> depths = Depths(n);
  const int64_t depth = *std::max_element(depths.begin(), depths.end());
  // A rank sends four parts in a repetition, each of half a chunk: up and twice down, and up.
  const int64_t chunks = PipelineChunks(call, 2 * depth - 1, 2.0);
  Rounds rounds{.kind = call.kind, .ranks = n, .parts = 2 * chunks, .parts_a_size = 2 * chunks};
  Round& round = rounds.rounds.emplace_back(
      Round{.repeat = chunks + 2 * depth - 1, .shift = 2, .pipelined = true});
  for (int32_t tree = 0; tree < 2; ++tree) {
    for (int32_t place = 1; place < n; ++place) {
      const int32_t child = RankAt(place, tree, n), parent = RankAt(Parent(place, n), tree, n);
      const int64_t level = depths[static_cast<size_t>(place)];
      const int64_t up = depth - level, down = depth + level - 1;  // when chunk 0 passes
      round.transfers.push_back(
          {.from = child, .to = parent, .first_part = tree - 2 * up, .reduce = true});
      round.transfers.push_back({.from = parent, .to = child, .first_part = tree - 2 * down});
    }
  }
  return rounds;
}

}  // namespace

extern const CollectiveAlgorithm kTreeCollective = {
    .name = "tree",
    .summary = "two binary trees, each for half of the data, up and down in chunks",
    .source = "Sanders, Speck & Träff 2009",
    .kinds = {CollectiveKind::kAllReduce, CollectiveKind::kBarrier},
    .chosen = {CollectiveKind::kAllReduce},
    .rounds = Emit,
};

}  // namespace orrery::cost_models
