#ifndef ORRERY_SIMULATOR_RANKS_RANK_RENDEZVOUS_H_
#define ORRERY_SIMULATOR_RANKS_RANK_RENDEZVOUS_H_

#include <cstdint>
#include <span>
#include <vector>

#include "absl/status/statusor.h"
#include "simulator/ranks/rank_programs.h"

// Who meets whom, and in which order: the first half of joining programs of ranks.

namespace orrery::simulator {

/// A step of a rank.
struct StepPosition {
  int32_t rank = 0;
  int32_t step = 0;
};

/// What the steps of all ranks become once they are matched. A rendezvous is a compute of one rank,
/// a collective of all that call it, or a send with its receive; waits are part of none.
struct RendezvousTable {
  std::vector<uint32_t> begin = {0};  // row m of `positions` goes from begin[m] to begin[m + 1]
  std::vector<StepPosition> positions =
      {};  // collectives: in the order of the communicator; senders first
  std::vector<std::vector<int32_t>> of = {};  // by rank and step: the rendezvous; -1 for a wait

  int32_t size() const { return static_cast<int32_t>(begin.size()) - 1; }
  std::span<const StepPosition> row(int32_t rendezvous) const {
    const size_t m = static_cast<size_t>(rendezvous);
    return std::span(positions).subspan(begin[m], begin[m + 1] - begin[m]);
  }
};

/// The rendezvous of `programs`, which must verify; an error that names both ends when calls, or
/// sends and receives, do not match.
absl::StatusOr<RendezvousTable> FindRendezvous(const RankPrograms& programs);

/// That a rendezvous cannot begin before another one is over, and why: at `position`, a step of
/// `after`, the rank has come past `before_step`, a step of `before`.
struct RendezvousWait {
  int32_t before = 0;
  int32_t after = 0;
  StepPosition position;
  int32_t before_step = 0;
  bool by_name = false;  // by a wait; else both are on one stream
};

/// All waits, by rank and step.
std::vector<RendezvousWait> WaitsOf(const RankPrograms& programs, const RendezvousTable& table);

/// The rendezvous in an order in which they can happen, first come first served; an error that
/// names the ranks that wait for each other when there is none.
absl::StatusOr<std::vector<int32_t>> OrderRendezvous(const RankPrograms& programs,
                                                     const RendezvousTable& table,
                                                     std::span<const RendezvousWait> waits);

}  // namespace orrery::simulator

#endif  // ORRERY_SIMULATOR_RANKS_RANK_RENDEZVOUS_H_
