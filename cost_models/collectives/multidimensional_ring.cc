#include <algorithm>
#include <vector>

#include "cost_models/collectives/collective_algorithm.h"

// On a grid of rings (a torus): a reduce-scatter along one dimension after the other, an all-gather
// back. For each dimension to begin with, and each way round, one such *channel* with an equal part
// of the data; so all links carry data all the time. On 4 x 3:
//
//     channels 0, 1   along x, to and fro, then along y
//     channels 2, 3   along y, to and fro, then along x
//
// A channel numbers its blocks, one a rank, by the coordinates in the order of its dimensions, the
// first the lowest digit; backwards, by the coordinates from the far end.

namespace orrery::cost_models {
namespace multidimensional_ring_cc {
namespace {

class Channel {
 public:
  Channel(const std::vector<int32_t>& sides, int32_t number)
      : sides_(sides), number_(number), first_(number / 2), backwards_(number % 2 == 1) {}

  // The side along which phase `phase` goes, and how many blocks apart its neighbours are.
  int32_t SideOf(size_t phase) const { return sides_[DimensionOf(phase)]; }
  int64_t Weight(size_t phase) const {
    int64_t weight = 1;
    for (size_t before = 0; before < phase; ++before) weight *= SideOf(before);
    return weight;
  }

  // The digit of a rank that phase `phase` turns.
  int32_t Digit(int32_t rank, size_t phase) const {
    const size_t dimension = DimensionOf(phase);
    const int32_t digit = rank / Stride(dimension) % sides_[dimension];
    return backwards_ ? sides_[dimension] - 1 - digit : digit;
  }
  int64_t Block(int32_t rank, size_t phases) const {
    int64_t block = 0;
    for (size_t phase = 0; phase < phases; ++phase) block += Digit(rank, phase) * Weight(phase);
    return block;
  }
  // Calls `visit` for each of so many ranks and the one that it sends to in phase `phase`.
  template <typename Visit>
  void ForEachStep(int32_t ranks, size_t phase, Visit visit) const {
    const int32_t side = SideOf(phase), stride = Stride(DimensionOf(phase));
    for (int32_t rank = 0; rank < ranks;) {
      for (int32_t digit = 0; digit < side; ++digit) {
        const int32_t next = (digit + (backwards_ ? side - 1 : 1)) % side;
        for (const int32_t end = rank + stride; rank < end; ++rank) {
          visit(rank, rank + (next - digit) * stride);
        }
      }
    }
  }

  int32_t number() const { return number_; }

 private:
  size_t DimensionOf(size_t phase) const {
    return (static_cast<size_t>(first_) + phase) % sides_.size();
  }
  int32_t Stride(size_t dimension) const {
    int32_t stride = 1;
    for (size_t below = 0; below < dimension; ++below) stride *= sides_[below];
    return stride;
  }

  const std::vector<int32_t>& sides_;
  int32_t number_;
  int32_t first_;
  bool backwards_;
};

class Grid {
 public:
  // `few`: as it is to be priced, which does not take which parts they are.
  Grid(const CollectiveCall& call, bool few)
      : call_(call), channels_(2 * static_cast<int64_t>(call.grid.size())), few_(few) {
    rounds_ = {.kind = call.kind, .ranks = call.ranks};
    rounds_.parts = rounds_.parts_a_size = call.ranks * channels_;
    if (few) return;
    rounds_.owners.resize(static_cast<size_t>(rounds_.parts));
    for (int32_t number = 0; number < channels_; ++number) {
      const Channel channel(call.grid, number);
      for (int32_t rank = 0; rank < call.ranks; ++rank) {
        const int64_t block = channel.Block(rank, call.grid.size());
        rounds_.owners[static_cast<size_t>(block * channels_ + number)] = rank;
      }
    }
  }

  Rounds Emit() {
    const size_t phases = call_.grid.size();
    if (call_.kind != CollectiveKind::kAllGather) {
      for (size_t phase = 0; phase < phases; ++phase) AppendPhase(phase, true);
    }
    if (call_.kind != CollectiveKind::kReduceScatter) {
      for (size_t phase = phases; phase-- > 0;) AppendPhase(phase, false);
    }
    return std::move(rounds_);
  }

 private:
  // Channels go along sides of different length, each at its own pace; who is through waits for the
  // others.
  void AppendPhase(size_t phase, bool reduce) {
    std::vector<int32_t> ends;  // of sides, in steps
    for (const int32_t side : call_.grid) ends.push_back(side - 1);
    std::sort(ends.begin(), ends.end());
    ends.erase(std::unique(ends.begin(), ends.end()), ends.end());
    int32_t begin = 0;
    for (const int32_t end : ends) {
      Round& round = rounds_.rounds.emplace_back(
          Round{.repeat = end - begin, .overlaps_next = end != ends.back()});
      round.transfers.reserve(static_cast<size_t>(call_.ranks * channels_));
      for (int32_t number = 0; number < channels_; ++number) {
        const Channel channel(call_.grid, number);
        if (channel.SideOf(phase) > end) AppendStep(channel, phase, begin, reduce, round);
      }
      begin = end;
    }
  }

  // Step `step` and those after it of all rings of a channel.
  void AppendStep(const Channel& channel, size_t phase, int32_t step, bool reduce, Round& round) {
    const int32_t side = channel.SideOf(phase);
    const int64_t weight = channel.Weight(phase);
    const int64_t parts = call_.ranks / (weight * side);
    channel.ForEachStep(call_.ranks, phase, [&](int32_t rank, int32_t next) {
      Transfer& transfer =
          round.transfers.emplace_back(Transfer{.from = rank, .to = next, .parts = parts});
      if (few_) return;
      // What a rank is responsible for arrives in the last step of a reduce-scatter.
      const int32_t digit = channel.Digit(rank, phase);
      const int32_t sent = (digit + (reduce ? side - 1 : side) - step) % side;
      const int64_t block = channel.Block(rank, phase) + sent * weight;
      transfer.first_part = block * channels_ + channel.number();
      transfer.stride = weight * side * channels_;
      transfer.reduce = reduce;
      transfer.shift = -weight * channels_;
    });
  }

  const CollectiveCall& call_;
  int64_t channels_;
  bool few_;
  Rounds rounds_;
};

Rounds Emit(const CollectiveCall& call) { return Grid(call, /*few=*/false).Emit(); }
Rounds Merged(const CollectiveCall& call) { return Grid(call, /*few=*/true).Emit(); }

bool Supports(const CollectiveCall& call) {
  return call.grid.size() >= 2 &&
         2 * static_cast<int64_t>(call.grid.size()) * call.ranks <= kMaxTransfersARound;
}

}  // namespace
}  // namespace multidimensional_ring_cc

extern const CollectiveAlgorithm kMultidimensionalRingCollective = {
    .name = "multidimensional-ring",
    .summary =
        "rings along one dimension of a grid after the other, in all orders of dimensions "
        "and both ways at once",
    .source = "Jain & Sabharwal 2010 (optimal bucket algorithms on tori)",
    .kinds = {CollectiveKind::kAllReduce, CollectiveKind::kReduceScatter,
              CollectiveKind::kAllGather},
    .chosen = {CollectiveKind::kAllReduce, CollectiveKind::kReduceScatter,
               CollectiveKind::kAllGather},
    .supports = multidimensional_ring_cc::Supports,
    .wanted = "all devices of a box of a torus, mesh or product, of two dimensions at least",
    .rounds = multidimensional_ring_cc::Emit,
    .merged = multidimensional_ring_cc::Merged,
};

}  // namespace orrery::cost_models
