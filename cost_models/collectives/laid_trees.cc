#include "cost_models/collectives/laid_trees.h"

#include "support/check.h"

namespace orrery::cost_models {
namespace laid_trees_cc {
namespace {

// When chunk 0 passes through the hops of one depth, counted in rounds: up from the deepest level,
// then down to it.
class Timetable {
 public:
  Timetable(CollectiveKind kind, int32_t depth)
      : goes_up_(kind != CollectiveKind::kBroadcast && kind != CollectiveKind::kAllGather),
        goes_down_(kind != CollectiveKind::kReduce && kind != CollectiveKind::kReduceScatter),
        depth_(depth) {}

  bool goes_up() const { return goes_up_; }
  bool goes_down() const { return goes_down_; }
  int64_t Up(int32_t depth) const { return depth_ - depth; }
  int64_t Down(int32_t depth) const { return (goes_up_ ? depth_ : 0) + depth - 1; }
  int64_t length() const { return int64_t{depth_} * ((goes_up_ ? 1 : 0) + (goes_down_ ? 1 : 0)); }

 private:
  bool goes_up_, goes_down_;
  int32_t depth_;
};

// Calls `append(at, transfer)` for each transfer of chunk 0, of tree t the part t.
template <typename Append>
void ForEachTransfer(const cluster::SpanningTrees& trees, const Timetable& timetable,
                     Append append) {
  for (size_t t = 0; t < trees.trees.size(); ++t) {
    for (const cluster::TreeHop& hop : trees.trees[t].hops) {
      const auto part = static_cast<int64_t>(t);
      if (timetable.goes_up()) {
        append(timetable.Up(hop.depth), Transfer{.from = hop.child,
                                                 .to = hop.parent,
                                                 .first_part = part,
                                                 .reduce = true,
                                                 .way = hop.way_up});
      }
      if (timetable.goes_down()) {
        append(
            timetable.Down(hop.depth),
            Transfer{.from = hop.parent, .to = hop.child, .first_part = part, .way = hop.way_down});
      }
    }
  }
}

// A round moves a chunk of each tree, all over the busiest link that hold it.
int64_t ChunksOf(const CollectiveCall& call, const cluster::SpanningTrees& trees, int64_t length) {
  CollectiveCall hop = call;
  hop.hop = {.rate = trees.busiest.rate, .latency = trees.hop_latency};
  return PipelineChunks(
      hop, length - 1,
      static_cast<double>(trees.busiest.trees) / static_cast<double>(trees.trees.size()));
}

}  // namespace
}  // namespace laid_trees_cc

Rounds TreeRounds(const CollectiveCall& call, const cluster::SpanningTrees& trees) {
  ORRERY_CHECK(!trees.trees.empty()) << "no trees of " << call.ranks;
  const laid_trees_cc::Timetable timetable(call.kind, trees.depth);
  const auto count = static_cast<int64_t>(trees.trees.size());
  const int64_t chunks = laid_trees_cc::ChunksOf(call, trees, timetable.length());
  Rounds rounds{.kind = call.kind, .ranks = call.ranks};
  rounds.parts = rounds.parts_a_size = count * chunks;
  if (call.kind == CollectiveKind::kAllGather || call.kind == CollectiveKind::kReduceScatter) {
    for (int64_t part = 0; part < rounds.parts; ++part) {
      rounds.owners.push_back(trees.trees[static_cast<size_t>(part % count)].root);
    }
  }
  // One chunk: each round has its own transfers, so that each takes no longer than they do.
  if (chunks == 1) {
    rounds.rounds.resize(static_cast<size_t>(timetable.length()));
    laid_trees_cc::ForEachTransfer(trees, timetable, [&](int64_t at, const Transfer& transfer) {
      rounds.rounds[static_cast<size_t>(at)].transfers.push_back(transfer);
    });
    return rounds;
  }
  Round& round = rounds.rounds.emplace_back(
      Round{.repeat = chunks + timetable.length() - 1, .shift = count, .pipelined = true});
  laid_trees_cc::ForEachTransfer(trees, timetable, [&](int64_t at, Transfer transfer) {
    transfer.first_part -= at * count;
    round.transfers.push_back(transfer);
  });
  return rounds;
}

}  // namespace orrery::cost_models
