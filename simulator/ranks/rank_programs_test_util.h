#ifndef ORRERY_SIMULATOR_RANKS_RANK_PROGRAMS_TEST_UTIL_H_
#define ORRERY_SIMULATOR_RANKS_RANK_PROGRAMS_TEST_UTIL_H_

#include <gtest/gtest.h>

#include <array>
#include <utility>

#include "absl/strings/string_view.h"
#include "simulator/ranks/rank_programs.h"

// For tests only.

namespace orrery::simulator {

inline constexpr std::array<absl::string_view, 4> kTestCollectives = {"all-reduce", "all-gather",
                                                                      "broadcast", "barrier"};

/// Whatever it is, it takes a picosecond a byte and rank. Remembers what it was asked.
class TestMachine : public Machine {
 public:
  absl::StatusOr<RankClass> RankOf(int32_t rank) override {
    if (rank >= positions) return absl::InvalidArgumentError("rank: the machine is full");
    return RankClass{.name = "r"};
  }
  absl::StatusOr<Task> TimeOf(const Call& call) override {
    ++calls;
    if (call.kind == broken) return absl::InvalidArgumentError("is not for this machine");
    return Task{.duration = Duration(call.size.count() * static_cast<int64_t>(call.ranks.size()))};
  }

  int32_t positions = 100;
  int calls = 0;
  absl::string_view broken = {};
};

/// The programs of that text, which must be some.
inline RankPrograms ParseRanks(absl::string_view text) {
  absl::StatusOr<RankPrograms> programs = ParseRankPrograms(text, kTestCollectives);
  EXPECT_TRUE(programs.ok()) << programs.status();
  return programs.ok() ? *std::move(programs) : RankPrograms();
}

/// Why they cannot be joined; empty when they can.
inline std::string JoinError(const RankPrograms& programs) {
  Program program;
  TestMachine machine;
  return std::string(Join(programs, machine, program).message());
}

}  // namespace orrery::simulator

#endif  // ORRERY_SIMULATOR_RANKS_RANK_PROGRAMS_TEST_UTIL_H_
