#include <bit>

#include "cost_models/collectives/collective_algorithm.h"

// Ranks exchange with partners at distance 1, 2, 4, …, each time half as much: a reduce-scatter in
// log2 n rounds; backwards an all-gather. What goes furthest is least. Ranks beyond the largest
// power of two hand their data to a partner before, and are handed the result after.

namespace orrery::cost_models {
namespace halving_doubling_cc {
namespace {

// Places 0 to m-1 take part, in the order of the bits of their ranks read backwards: then what a
// rank keeps in a round is always a run of places.
class HalvingDoubling {
 public:
  explicit HalvingDoubling(const CollectiveCall& call)
      : places_(static_cast<int32_t>(std::bit_floor(static_cast<uint32_t>(call.ranks)))),
        folded_(call.ranks - places_),
        parted_(call.kind == CollectiveKind::kReduceScatter ||
                call.kind == CollectiveKind::kAllGather) {
    rounds_ = {.kind = call.kind, .ranks = call.ranks};
    rounds_.parts = rounds_.parts_a_size = parted_ ? call.ranks : places_;
    if (!parted_) return;
    for (int32_t place = 0; place < places_; ++place) rounds_.owners.push_back(RankAt(place));
    // Part m + i is that of the rank folded into the one at place i.
    for (int32_t place = 0; place < places_; ++place) {
      if (RankAt(place) >= folded_) continue;
      folded_places_.push_back(place);
      rounds_.owners.push_back(places_ + RankAt(place));
    }
  }

  Rounds Emit() {
    using enum CollectiveKind;
    const CollectiveKind kind = rounds_.kind;
    if (folded_ > 0) Fold(kind != kAllGather);
    if (kind != kAllGather) {
      for (int32_t half = places_ / 2; half >= 1; half /= 2) Exchange(half, true);
    }
    if (kind != kReduceScatter) {
      for (int32_t half = 1; half < places_; half *= 2) Exchange(half, false);
    }
    if (folded_ > 0) Unfold(kind == kReduceScatter);
    return std::move(rounds_);
  }

 private:
  int32_t RankAt(int32_t place) const {
    int32_t rank = 0;
    for (int32_t bit = 1; bit < places_; bit *= 2) {
      rank = rank * 2 + ((place & bit) != 0 ? 1 : 0);
    }
    return rank;
  }

  // The parts of `count` places from `first` on: their own, and those folded into them.
  void Append(Round& round, Transfer transfer, int32_t first, int32_t count) const {
    transfer.first_part = first;
    transfer.parts = count;
    round.transfers.push_back(transfer);
    const auto index = [&](int32_t place) {
      return std::lower_bound(folded_places_.begin(), folded_places_.end(), place) -
             folded_places_.begin();
    };
    transfer.first_part = places_ + index(first);
    transfer.parts = index(first + count) - index(first);
    if (transfer.parts > 0) round.transfers.push_back(transfer);
  }

  void Exchange(int32_t half, bool reduce) {
    Round& round = rounds_.rounds.emplace_back();
    for (int32_t place = 0; place < places_; ++place) {
      const int32_t partner = place ^ half;
      const int32_t sent = (reduce ? partner : place) & ~(half - 1);
      Append(round, {.from = RankAt(place), .to = RankAt(partner), .reduce = reduce}, sent, half);
    }
  }

  void Fold(bool reduce) {
    Round& round = rounds_.rounds.emplace_back();
    for (int32_t i = 0; i < folded_; ++i) {
      round.transfers.push_back({.from = places_ + i, .to = i, .reduce = reduce});
      round.transfers.back().parts = rounds_.parts;
      if (!reduce) SetFoldedPart(round.transfers.back(), i);
    }
  }

  void Unfold(bool part_only) {
    Round& round = rounds_.rounds.emplace_back();
    for (int32_t i = 0; i < folded_; ++i) {
      round.transfers.push_back({.from = i, .to = places_ + i});
      round.transfers.back().parts = rounds_.parts;
      if (part_only) SetFoldedPart(round.transfers.back(), i);
    }
  }

  // The one part that is of the rank folded into `rank`.
  void SetFoldedPart(Transfer& transfer, int32_t rank) const {
    for (size_t i = 0; i < folded_places_.size(); ++i) {
      if (RankAt(folded_places_[i]) != rank) continue;
      transfer.first_part = places_ + static_cast<int64_t>(i);
      transfer.parts = 1;
    }
  }

  int32_t places_;
  int32_t folded_;
  bool parted_;
  std::vector<int32_t> folded_places_;  // of the ranks that another is folded into, ascending
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
