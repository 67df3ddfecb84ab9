#ifndef ORRERY_SIMULATOR_RANKS_RANK_MEETINGS_H_
#define ORRERY_SIMULATOR_RANKS_RANK_MEETINGS_H_

#include <cstdint>
#include <span>
#include <vector>

#include "absl/status/statusor.h"
#include "simulator/ranks/rank_programs.h"

// Who meets whom, and in which order: the first half of joining programs of ranks.

namespace orrery::simulator {

/// A step of a rank.
struct StepPlace {
  int32_t rank = 0;
  int32_t step = 0;
};

/// What the steps of all ranks become once they are matched. A meeting is a compute of one rank, a
/// collective of all that call it, or a send with its receive; waits are part of none.
struct Meetings {
  std::vector<uint32_t> begin = {0};  // row m of `places` goes from begin[m] to begin[m + 1]
  std::vector<StepPlace> places =
      {};  // collectives: in the order of the communicator; senders first
  std::vector<std::vector<int32_t>> of = {};  // by rank and step: the meeting; -1 for a wait

  int32_t size() const { return static_cast<int32_t>(begin.size()) - 1; }
  std::span<const StepPlace> row(int32_t meeting) const {
    const size_t m = static_cast<size_t>(meeting);
    return std::span(places).subspan(begin[m], begin[m + 1] - begin[m]);
  }
};

/// The meetings of `programs`, which must verify; an error that names both ends when calls, or
/// sends and receives, do not match.
absl::StatusOr<Meetings> FindMeetings(const RankPrograms& programs);

/// That a meeting cannot begin before another one is over, and why: at `place`, a step of `after`,
/// the rank has come past `before_step`, a step of `before`.
struct MeetingWait {
  int32_t before = 0;
  int32_t after = 0;
  StepPlace place;
  int32_t before_step = 0;
  bool by_name = false;  // by a wait; else both are on one stream
};

/// All waits, by rank and step.
std::vector<MeetingWait> WaitsOf(const RankPrograms& programs, const Meetings& meetings);

/// The meetings in an order in which they can take place, first come first served; an error that
/// names the ranks that wait for each other when there is none.
absl::StatusOr<std::vector<int32_t>> OrderMeetings(const RankPrograms& programs,
                                                   const Meetings& meetings,
                                                   std::span<const MeetingWait> waits);

}  // namespace orrery::simulator

#endif  // ORRERY_SIMULATOR_RANKS_RANK_MEETINGS_H_
