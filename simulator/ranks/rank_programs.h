#ifndef ORRERY_SIMULATOR_RANKS_RANK_PROGRAMS_H_
#define ORRERY_SIMULATOR_RANKS_RANK_PROGRAMS_H_

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "simulator/program/program.h"
#include "support/units.h"

// What each rank runs by itself, as a person or a framework writes it: compute, collectives, sends
// and receives on streams. `Join` finds out who meets whom, and makes one Program of all.
//
// The n-th call of a communicator on each of its ranks is one collective; the n-th send from a to b
// with a tag meets the n-th receive of b from a with that tag. Both ends wait for each other, so
// what does not match, and orders in which ranks wait in a circle, are found before anything runs.

namespace orrery::simulator {

/// Ranks that call collectives together; the first is the root of those that have one.
struct Communicator {
  std::string name = {};
  std::vector<int32_t> ranks = {};
  int32_t line = 0;  // of the text that it is from; 0 when from none
};

/// What a step of a rank is.
enum class StepKind : uint8_t { kCompute, kCollective, kSend, kReceive, kWait };

/// Something that a rank does on one of its streams, after what it did there before.
struct RankStep {
  StepKind kind = StepKind::kCompute;
  std::string name = {};  // by which others wait for it; may be empty
  std::string stream = "compute";
  Duration duration = {};       // of compute; at most kLongestCompute
  std::string collective = {};  // the kind of collective: "all-reduce"
  int32_t communicator = -1;    // row of RankPrograms::communicators
  Bytes size = {};              // of a collective, send or receive; at most kLargestMessage
  int32_t peer = -1;            // the rank that a send goes to or a receive comes from
  int32_t tag = 0;              // of a send or receive
  int32_t earlier = -1;  // wait: the step of this rank after which the stream goes on; has a name
  int32_t line = 0;      // as in Communicator
};

/// The longest that a step may compute: an hour.
inline constexpr Duration kLongestCompute(3'600'000'000'000'000);  // an hour
/// The most that a collective, a send or a receive may move: a pebibyte.
inline constexpr Bytes kLargestMessage(int64_t{1} << 50);

/// What each rank does by itself, step by step, and whom it meets.
struct RankPrograms {
  std::vector<Communicator> communicators = {};
  std::vector<std::vector<RankStep>> ranks = {};  // by rank
};

/// A collective, or a message (of kind "send", from the first rank to the second).
struct Call {
  absl::string_view kind = {};
  Bytes size = {};
  std::span<const int32_t> ranks = {};
};

/// What ranks run on: says how long things take.
class Machine {
 public:
  virtual ~Machine() = default;
  /// The rank with its name, memory and slow-down, `members` left to the caller; an error when the
  /// machine has no place for it.
  virtual absl::StatusOr<RankClass> RankOf(int32_t rank) = 0;
  /// How long a call of at least two ranks takes: a duration, or a flow that this has added to the
  /// program that is made.
  virtual absl::StatusOr<Task> TimeOf(const Call& call) = 0;
};

/// Checks each step by itself: ranks, communicators and steps that are named must be there, a rank
/// once in a communicator, the caller a member of it, nobody its own peer, sizes and times in
/// bounds, names without blanks, and each once in a rank.
absl::Status Verify(const RankPrograms& programs);

/// Adds to `program`, which must be empty, a rank, its streams and its steps for each of
/// `programs`. Its tasks are in an order in which they can run. A stream that is called as a
/// StreamKind is one; others are compute streams when they compute first, else communicate.
///
/// InvalidArgument, of one line that names both ends with their lines, when collectives differ in
/// kind, size or number, sends and receives in number or size, when ranks wait for each other in a
/// circle, and for all that `Verify` finds; errors of `machine` with the step that asked.
absl::Status Join(const RankPrograms& programs, Machine& machine, Program& program);

/// The text of programs that verify. See docs/programs.md for the form; it reads back as the same
/// text. Neighbouring ranks with the same steps share a section.
std::string Print(const RankPrograms& programs);

/// The programs of that text; a line that cannot be read is named by its number. `collectives` are
/// the kinds that there are. Names are found; what else `Verify` and `Join` check is left to them.
absl::StatusOr<RankPrograms> ParseRankPrograms(absl::string_view text,
                                               std::span<const absl::string_view> collectives);

/// "rank 2 (line 7)", or "rank 2 (step 3)" when it is of no text.
std::string WhereIs(const RankPrograms& programs, int32_t rank, int32_t step);
/// What a step does: "all-reduce of 64 KiB in 'world'".
std::string Describe(const RankPrograms& programs, const RankStep& step);

}  // namespace orrery::simulator

#endif  // ORRERY_SIMULATOR_RANKS_RANK_PROGRAMS_H_
