#ifndef ORRERY_COST_MODELS_COLLECTIVES_ROUNDS_H_
#define ORRERY_COST_MODELS_COLLECTIVES_ROUNDS_H_

#include <cstdint>
#include <vector>

#include "cost_models/collectives/collective_kind.h"

// A collective as data: which rank sends which parts of the data to whom, round after round. From
// it come the time on any topology (pricing.h), the flows of a simulation
// (lowering/network/transfers.h), and, executed symbolically, the proof that every rank ends up
// with its data.
//
// A rank begins a round when it has sent and received everything of the rounds before; what it
// sends is what it held then. A transfer begins when both its ranks have begun its round.
//
// The data are parts of one size, numbered:
//   all-to-all      part s*n + d is what rank s brings for rank d; n parts are the size
//   send-receive    part r is the message of rank r; one part is the size
//   reduce-scatter, all-gather, scatter, gather
//                   part p is what rank OwnerOf(p) brings or ends up with; all have equally many
//   all others      the tensor, cut into equal parts

namespace orrery::cost_models {

/// A hub is a switch that reduces what comes to it and sends the result to many. It replaces
/// a rank in a transfer; it has no data of its own. Hub j is that of node j; the one after the
/// last node is the fabric between nodes.
constexpr int32_t Hub(int32_t number) { return -1 - number; }
/// Whether a `from` or `to` of a transfer is a hub, no rank.
constexpr bool IsHub(int32_t rank) { return rank < 0; }

/// Parts `first_part`, `first_part` + `stride`, …, `parts` of them, from one rank to another. The
/// receiver adds them to its own (`reduce`) or has them instead of its own.
struct Transfer {
  int32_t from = 0;  // rank within the group, or a hub
  int32_t to = 0;
  int64_t first_part = 0;
  int64_t parts = 1;
  int64_t stride = 1;
  bool reduce = false;
  int32_t way = 0;    // of those that an explicit graph has between the two: Topology::AppendWay
  int64_t shift = 0;  // besides that of its round; not in a pipeline
  /// How many messages it stands for, which have `parts` together: more than one only where they
  /// are merged to be priced (CollectiveAlgorithm::merged), and which parts they are is not told.
  int32_t messages = 1;
};

/// Transfers that happen at the same time, `repeat` times over. From one repetition to the next all
/// parts move on by `shift`, and those of a transfer by its own.
struct Round {
  int64_t repeat = 1;
  int64_t shift = 0;
  /// How part numbers beyond the last or before the first are read. False: modulo the number of
  /// parts, as in a ring. True: nothing is sent in that repetition; so a pipeline fills and drains.
  /// Then all transfers are of one part.
  bool pipelined = false;
  /// The data streams through this round and the next at the same time, in pieces so small that
  /// their number does not matter, or the next goes on with some of this one at their own pace:
  /// what links carry adds up, what they make wait does too.
  bool overlaps_next = false;
  std::vector<Transfer> transfers = {};
  /// In place of transfers: a part from every rank to each other, where nobody asks which, as
  /// ForEachTransfer lists them.
  bool all_pairs = false;
  /// Of a pipeline whose transfers are merged to be priced: transfers whose first pieces wait for
  /// each other as long as those of all.
  std::vector<Transfer> paced = {};
};

/// See the top of this file.
struct Rounds {
  CollectiveKind kind = CollectiveKind::kAllReduce;
  int32_t ranks = 2;
  int32_t ranks_a_node = 1;  // says which ranks meet at a hub; see Hub
  int64_t parts = 1;         // in all
  int64_t parts_a_size = 1;  // how many make up the size of the collective
  /// Whose each part is, where a part is one rank's; empty when part r is that of rank r.
  std::vector<int32_t> owners = {};
  std::vector<Round> rounds = {};

  /// The rank whose part it is, where a part is one rank's.
  int32_t OwnerOf(int64_t part) const {
    return owners.empty() ? static_cast<int32_t>(part) : owners[static_cast<size_t>(part)];
  }
};

/// Calls `visit` for each other of so many ranks, the one after `rank` first: so no two that do the
/// same send to the same one at the same time.
template <typename Visit>
void ForEachOther(int32_t rank, int32_t ranks, Visit visit) {
  for (int32_t other = rank + 1; other < ranks; ++other) visit(other);
  for (int32_t other = 0; other < rank; ++other) visit(other);
}

/// Calls `visit` for each transfer of a round among so many ranks, in order.
template <typename Visit>
void ForEachTransfer(const Round& round, int32_t ranks, Visit visit) {
  for (const Transfer& transfer : round.transfers) visit(transfer);
  if (!round.all_pairs) return;
  Transfer transfer;
  for (transfer.from = 0; transfer.from < ranks; ++transfer.from) {
    ForEachOther(transfer.from, ranks, [&](int32_t to) {
      transfer.to = to;
      visit(transfer);
    });
  }
}

/// In how many of the repetitions of `round` a transfer of it moves something.
int64_t ActiveRepetitions(const Transfer& transfer, const Round& round, int64_t parts);

/// The number of the first part of `transfer` in that repetition; -1 when nothing is sent. Its
/// further parts are `stride` apart, modulo `parts`.
int64_t FirstPart(const Transfer& transfer, const Round& round, int64_t repetition, int64_t parts);

/// Numbers after the last part begin anew, those before the first at the end.
int64_t Wrap(int64_t part, int64_t parts);

/// The number of repetitions of all rounds.
int64_t RepetitionCount(const Rounds& rounds);
/// The number of transfers when each repetition is counted, at most what the type holds.
int64_t TransferCount(const Rounds& rounds);

}  // namespace orrery::cost_models

#endif  // ORRERY_COST_MODELS_COLLECTIVES_ROUNDS_H_
