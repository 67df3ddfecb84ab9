#ifndef ORRERY_COST_MODELS_COLLECTIVES_RING_H_
#define ORRERY_COST_MODELS_COLLECTIVES_RING_H_

#include <cstdint>
#include <span>
#include <vector>

#include "cost_models/collectives/collective_algorithm.h"

namespace orrery::cost_models {

/// The ranks in the order in which a ring passes through them.
using RingOrder = std::vector<int32_t>;

/// One ring, or over several nodes of several ranks as many as a node has ranks, each of which
/// leaves the nodes by another one.
std::vector<RingOrder> RingChannels(const CollectiveCall& call);

/// An all-reduce, reduce-scatter or all-gather over several rings at once, each of which carries an
/// equal part of the data. Every order holds all ranks.
Rounds RingRounds(CollectiveKind kind, std::span<const RingOrder> orders);

/// RingRounds over RingChannels, and where `both_ways` over the same backwards after them, merged
/// to be priced: O(rings × ranks) in time, but in room O(ranks × those that a rank sends to).
Rounds MergedRingRounds(const CollectiveCall& call, bool both_ways);

/// Ranks `first`, `first` + `stride`, … of which there are `count`, as a ring inside a larger
/// algorithm: rank number i of them is responsible for the parts `first_part` + i*`part_stride`
/// and `parts`-1 more that are `stride_within` apart.
struct SubRing {
  int32_t first = 0;
  int32_t stride = 1;
  int32_t count = 1;
  int64_t first_part = 0;
  int64_t part_stride = 1;
  int64_t parts = 1;
  int64_t stride_within = 1;
};

/// Appends to `round` the first step of a reduce-scatter (`reduce`) or an all-gather of a sub-ring;
/// further steps shift the parts by -part_stride.
void AppendSubRing(const SubRing& ring, bool reduce, Round& round);

/// Messages from rank to rank in the order in which each was first met, and how many of each. A
/// rank sends to few others, which are looked through.
class MessageCounter {
 public:
  /// Of so many ranks.
  explicit MessageCounter(int32_t ranks) : newest_(static_cast<size_t>(ranks), kNone) {}

  /// So many more messages of one part each.
  void Add(int32_t from, int32_t to, int32_t count = 1) {
    int32_t& newest = newest_[static_cast<size_t>(from)];
    for (int32_t i = newest; i != kNone; i = before_[static_cast<size_t>(i)]) {
      Transfer& known = messages_[static_cast<size_t>(i)];
      if (known.to != to) continue;
      known.parts += count;
      known.messages += count;
      return;
    }
    before_.push_back(newest);
    newest = static_cast<int32_t>(messages_.size());
    messages_.push_back({.from = from, .to = to, .parts = count, .messages = count});
  }

  /// One transfer each.
  const std::vector<Transfer>& messages() const { return messages_; }

 private:
  static constexpr int32_t kNone = -1;

  std::vector<int32_t> newest_;  // message of each rank
  std::vector<int32_t> before_;  // of each message, the one of its rank before it
  std::vector<Transfer> messages_;
};

}  // namespace orrery::cost_models

#endif  // ORRERY_COST_MODELS_COLLECTIVES_RING_H_
