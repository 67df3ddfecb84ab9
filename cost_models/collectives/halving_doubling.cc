#include <bit>

#include "cost_models/collectives/collective_algorithm.h"

// Ranks exchange with partners at distance 1, 2, 4, …, each time half as much: a reduce-scatter in
// log2 n rounds; backwards an all-gather. What goes furthest is least. Ranks beyond the largest
// power of two hand their data to a partner before, and are handed the result after.

namespace orrery::cost_models {
namespace halving_doubling_cc {
namespace {

// Positions 0 to m-1 take part, in the order of the bits of their ranks read backwards: then what a
// rank keeps in a round is always a run of positions.
class HalvingDoubling {
 public:
  explicit HalvingDoubling(const CollectiveCall& call)
      : positions_(static_cast<int32_t>(std::bit_floor(static_cast<uint32_t>(call.ranks)))),
        folded_(call.ranks - positions_),
        parted_(call.kind == CollectiveKind::kReduceScatter ||
                call.kind == CollectiveKind::kAllGather) {
    rounds_ = {.kind = call.kind, .ranks = call.ranks};
    rounds_.parts = rounds_.parts_a_size = parted_ ? call.ranks : positions_;
    if (!parted_) return;
    for (int32_t position = 0; position < positions_; ++position)
      rounds_.owners.push_back(RankAt(position));
    // Part m + i is that of the rank folded into the one at position i.
    for (int32_t position = 0; position < positions_; ++position) {
      if (RankAt(position) >= folded_) continue;
      folded_positions_.push_back(position);
      rounds_.owners.push_back(positions_ + RankAt(position));
    }
  }

  Rounds Emit() {
    using enum CollectiveKind;
    const CollectiveKind kind = rounds_.kind;
    if (folded_ > 0) Fold(kind != kAllGather);
    if (kind != kAllGather) {
      for (int32_t half = positions_ / 2; half >= 1; half /= 2) Exchange(half, true);
    }
    if (kind != kReduceScatter) {
      for (int32_t half = 1; half < positions_; half *= 2) Exchange(half, false);
    }
    if (folded_ > 0) Unfold(kind == kReduceScatter);
    return std::move(rounds_);
  }

 private:
  int32_t RankAt(int32_t position) const {
    int32_t rank = 0;
    for (int32_t bit = 1; bit < positions_; bit *= 2) {
      rank = rank * 2 + ((position & bit) != 0 ? 1 : 0);
    }
    return rank;
  }

  // The parts of `count` positions from `first` on: their own, and those folded into them.
  void Append(Round& round, Transfer transfer, int32_t first, int32_t count) const {
    transfer.first_part = first;
    transfer.parts = count;
    round.transfers.push_back(transfer);
    const auto index = [&](int32_t position) {
      return std::lower_bound(folded_positions_.begin(), folded_positions_.end(), position) -
             folded_positions_.begin();
    };
    transfer.first_part = positions_ + index(first);
    transfer.parts = index(first + count) - index(first);
    if (transfer.parts > 0) round.transfers.push_back(transfer);
  }

  void Exchange(int32_t half, bool reduce) {
    Round& round = rounds_.rounds.emplace_back();
    for (int32_t position = 0; position < positions_; ++position) {
      const int32_t partner = position ^ half;
      const int32_t sent = (reduce ? partner : position) & ~(half - 1);
      Append(round, {.from = RankAt(position), .to = RankAt(partner), .reduce = reduce}, sent,
             half);
    }
  }

  void Fold(bool reduce) {
    Round& round = rounds_.rounds.emplace_back();
    for (int32_t i = 0; i < folded_; ++i) {
      round.transfers.push_back({.from = positions_ + i, .to = i, .reduce = reduce});
      round.transfers.back().parts = rounds_.parts;
      if (!reduce) SetFoldedPart(round.transfers.back(), i);
    }
  }

  void Unfold(bool part_only) {
    Round& round = rounds_.rounds.emplace_back();
    for (int32_t i = 0; i < folded_; ++i) {
      round.transfers.push_back({.from = i, .to = positions_ + i});
      round.transfers.back().parts = rounds_.parts;
      if (part_only) SetFoldedPart(round.transfers.back(), i);
    }
  }

  // The one part that is of the rank folded into `rank`.
  void SetFoldedPart(Transfer& transfer, int32_t rank) const {
    for (size_t i = 0; i < folded_positions_.size(); ++i) {
      if (RankAt(folded_positions_[i]) != rank) continue;
      transfer.first_part = positions_ + static_cast<int64_t>(i);
      transfer.parts = 1;
    }
  }

  int32_t positions_;
  int32_t folded_;
  bool parted_;
  std::vector<int32_t> folded_positions_;  // of the ranks that another is folded into, ascending
  Rounds rounds_;
};

Rounds Emit(const CollectiveCall& call) { return HalvingDoubling(call).Emit(); }

}  // namespace
}  // namespace halving_doubling_cc

extern const CollectiveAlgorithm kHalvingDoublingCollective = {
    .name = "halving-doubling",
    .summary = "exchanges with partners at doubling distance, each time half as much",
    .source = "Rabenseifner 2004; Thakur, Rabenseifner & Gropp 2005",
    .kinds = {CollectiveKind::kAllReduce, CollectiveKind::kReduceScatter,
              CollectiveKind::kAllGather, CollectiveKind::kBarrier},
    .chosen = {},
    .rounds = halving_doubling_cc::Emit,
};

}  // namespace orrery::cost_models
