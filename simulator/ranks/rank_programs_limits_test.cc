#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "simulator/ranks/rank_programs.h"
#include "simulator/ranks/rank_programs_test_util.h"
#include "simulator/ranks/rank_rendezvous.h"

// Where what programs of ranks may say ends: the last value on one side, the first on the other.

namespace orrery::simulator {
namespace rank_programs_limits_test_cc {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::string VerifyError(const RankPrograms& programs) {
  return std::string(Verify(programs).message());
}

// Of two ranks, of which the first does that.
std::string StepError(const RankStep& step) { return VerifyError({.ranks = {{step}, {}}}); }

TEST(RankProgramsLimits, ComputeTakesUpToAnHour) {
  EXPECT_EQ(StepError({.duration = Duration(0)}), "");
  EXPECT_EQ(StepError({.duration = kLongestCompute}), "");
  EXPECT_EQ(StepError({.duration = kLongestCompute + Duration(1)}),
            "rank 0 (step 0): compute: got 3600000000000001 ps; wanted 0 ps to an hour");
}

TEST(RankProgramsLimits, MessagesHaveUpToAPebibyte) {
  const auto error = [](Bytes size) {
    return StepError({.kind = StepKind::kSend, .size = size, .peer = 1});
  };
  EXPECT_EQ(error(Bytes(0)), "");
  EXPECT_EQ(error(kLargestMessage), "");
  EXPECT_EQ(error(kLargestMessage + Bytes(1)),
            "rank 0 (step 0): size: got 1125899906842625 bytes; wanted 0 to 1024TiB");
}

TEST(RankProgramsLimits, AllMessagesTogetherHaveUpTo4Exbibytes) {
  const RankStep send{.kind = StepKind::kSend, .size = kLargestMessage, .peer = 1};
  RankPrograms programs{.ranks = {{}, {}}};
  programs.ranks[0].assign(4096, send);  // 2^12 of 2^50
  EXPECT_EQ(VerifyError(programs), "");
  programs.ranks[0].push_back({.kind = StepKind::kSend, .size = Bytes(1), .peer = 1});
  EXPECT_EQ(VerifyError(programs),
            "programs of ranks: all messages together have more than 4 EiB; wanted less");
}

TEST(RankProgramsLimits, PeersAndMembersAreRanksThatHaveAProgram) {
  for (const StepKind kind : {StepKind::kSend, StepKind::kReceive}) {
    EXPECT_EQ(StepError({.kind = kind, .peer = 1}), "");
    EXPECT_THAT(StepError({.kind = kind, .peer = 2}),
                HasSubstr("there is no rank 2; wanted one of the 2 ranks that have a program"));
  }
  EXPECT_THAT(StepError({.kind = StepKind::kReceive, .peer = 0}),
              HasSubstr("rank 0 is receiver and sender; wanted another rank as peer"));
  const auto error = [](int32_t member) {
    return VerifyError({.communicators = {{.name = "w", .ranks = {0, member}}}, .ranks = {{}, {}}});
  };
  EXPECT_EQ(error(1), "");
  for (const int32_t nobody : {2, -1}) {
    EXPECT_EQ(error(nobody), absl::StrCat("communicator 'w': has rank ", nobody,
                                          "; wanted one of the 2 ranks that have a program"));
  }
}

TEST(RankProgramsLimits, CommunicatorsAreNamedByTheirRow) {
  const auto error = [](int32_t communicator) {
    return VerifyError({.communicators = {{.name = "w", .ranks = {0}}},
                        .ranks = {{{.kind = StepKind::kCollective,
                                    .collective = "barrier",
                                    .communicator = communicator}}}});
  };
  EXPECT_EQ(error(0), "");
  EXPECT_THAT(error(1), HasSubstr("barrier: got communicator 1; wanted one of the 1"));
  EXPECT_THAT(error(-1), HasSubstr("barrier: got communicator -1; wanted one of the 1"));
}

// They must be words of the text form.
TEST(RankProgramsLimits, NamesAreWordsWithoutColonsSharpsAndQuotes) {
  for (const std::string name : {"a:b", "a#", "\"a", "a b", "a\n", "\x7f"}) {
    EXPECT_EQ(StepError({.name = name}),
              absl::StrCat("rank 0 (step 0): names: got '", name,
                           "' on 'compute'; wanted words without ':' and '#'"));
    EXPECT_THAT(StepError({.stream = name}), HasSubstr("wanted words without ':' and '#'"));
    EXPECT_THAT(VerifyError({.communicators = {{.name = name, .ranks = {0}}}, .ranks = {{}}}),
                HasSubstr("its name; wanted a word without ':' and '#'"));
  }
  for (const std::string name : {"a", "a.b-c", "~!", "'"}) EXPECT_EQ(StepError({.name = name}), "");
  EXPECT_EQ(VerifyError({.ranks = {{{}, {}}}}), "") << "no name is no name twice";
}

TEST(RankProgramsLimits, WaitsAreForEarlierStepsThatHaveAName) {
  const auto error = [](int32_t earlier) {
    const RankStep named{.name = "a"}, wait{.kind = StepKind::kWait, .name = "b", .earlier = 0};
    return VerifyError(
        {.ranks = {{named, {}, wait, {.kind = StepKind::kWait, .earlier = earlier}}}});
  };
  EXPECT_EQ(error(0), "");
  EXPECT_THAT(error(1), HasSubstr("(step 3): wait: got step 1; wanted one that has a name"));
  EXPECT_THAT(error(2), HasSubstr("(step 3): wait: got step 2; wanted one that has a name"));
  EXPECT_THAT(error(3), HasSubstr("wait: got step 3; wanted a step before its own, 3"));
  EXPECT_THAT(error(-1), HasSubstr("wait: got step -1; wanted a step before its own, 3"));
}

TEST(RankProgramsLimits, LinesAreNamedFromTheFirstOn) {
  const RankPrograms programs{.ranks = {{{.line = 1}, {.line = 0}}}};
  EXPECT_EQ(WhereIs(programs, 0, 0), "rank 0 (line 1)");
  EXPECT_EQ(WhereIs(programs, 0, 1), "rank 0 (step 1)");
  EXPECT_EQ(VerifyError({.communicators = {{.name = "w", .line = 1}}}),
            "communicator 'w' (line 1): has no ranks; wanted at least one");
  EXPECT_EQ(VerifyError({.communicators = {{.name = "w"}}}),
            "communicator 'w': has no ranks; wanted at least one");
}

TEST(RankProgramsLimits, StepsAreDescribed) {
  const RankPrograms programs{.communicators = {{.name = "w"}}};
  EXPECT_EQ(Describe(programs, {}), "compute");
  EXPECT_EQ(Describe(programs, {.name = "f"}), "compute 'f'");
  EXPECT_EQ(Describe(programs, {.kind = StepKind::kWait, .name = "f"}), "wait");
  EXPECT_EQ(
      Describe(programs, {.kind = StepKind::kReceive, .size = Bytes(2048), .peer = 7, .tag = -3}),
      "receive from rank 7 of 2.00 KiB with tag -3");
  EXPECT_EQ(Describe(programs, {.kind = StepKind::kCollective,
                                .collective = "barrier",
                                .communicator = 0,
                                .size = Bytes(5)}),
            "barrier of 5 B in 'w'");
}

TEST(RankProgramsLimits, TextsNameRanksByRangesOfTwoEnds) {
  const auto error = [](absl::string_view ranks) {
    const std::string text = absl::StrCat("rank-programs\nrank ", ranks);
    return std::string(ParseRankPrograms(text, kTestCollectives).status().message());
  };
  for (const absl::string_view fine : {"0", "3-3", "2,0-1", "1048575"}) {
    EXPECT_EQ(error(fine), "") << fine;
  }
  for (const absl::string_view wrong :
       {"0-1-2", "3-", "-3", "0,", "x", "0-x", "2-1", "0-1048576"}) {
    EXPECT_EQ(error(wrong), absl::StrCat("line 2: found '", wrong,
                                         "', wanted ranks below 1048576 such as 0-3,8"));
  }
}

// 4 x 2^20 ranks may be named, on one line or several; not one more.
TEST(RankProgramsLimits, TextsNameSoManyRanks) {
  const auto error = [](absl::string_view more) {
    const std::string text =
        absl::StrCat("rank-programs\nrank 0-1048575,0-1048575,0-1048575\nrank 0-1048575\n", more);
    return std::string(ParseRankPrograms(text, kTestCollectives).status().message());
  };
  EXPECT_EQ(error(""), "");
  EXPECT_EQ(error("rank 0"), "line 4: found '0', wanted fewer ranks in all lines together");
}

TEST(RankProgramsLimits, TextsHaveUpToAnHourAndAPebibyte) {
  const auto error = [](absl::string_view step) {
    const std::string text = absl::StrCat("rank-programs\ncommunicator w 0\nrank 0\n", step);
    return std::string(ParseRankPrograms(text, kTestCollectives).status().message());
  };
  EXPECT_EQ(error("compute 3600s"), "");
  EXPECT_EQ(error("compute 3600000000000001ps"),
            "line 4: found '3600000000000001ps', wanted a duration of at most 3600s such as 1.5ms");
  EXPECT_EQ(error("all-reduce w 1024TiB"), "");
  EXPECT_EQ(error("all-reduce w 1125899906842625"),
            "line 4: found '1125899906842625', wanted a size of at most 1024TiB such as 64MiB");
  EXPECT_EQ(error("all-reduce w on data"),
            "line 4: found 'on', wanted a size of at most 1024TiB such as 64MiB");
  EXPECT_EQ(error("barrier w on data"), "");
  EXPECT_EQ(error("barrier w"), "");
  EXPECT_EQ(error("communicator"),
            "line 4: found the end of the line, wanted a name that no communicator has yet");
}

TEST(RankProgramsLimits, EightCommunicatorsAreNamedToChooseFrom) {
  std::string text = "rank-programs\n";
  for (int i = 0; i < 10; ++i) absl::StrAppend(&text, "communicator c", i, " 0\n");
  absl::StrAppend(&text, "rank 0\nbarrier none\n");
  EXPECT_EQ(ParseRankPrograms(text, kTestCollectives).status().message(),
            "line 13: found 'none', wanted a communicator that a line above declares: c0, c1, c2, "
            "c3, c4, c5, c6, c7");
}

// A second has twelve zeros: from there on in whole picoseconds.
TEST(RankProgramsLimits, LongTimesArePrintedInPicoseconds) {
  const auto text = [](int64_t picoseconds) {
    return Print({.ranks = {{{.duration = Duration(picoseconds)}}}});
  };
  EXPECT_EQ(text(999'000'000'000), "rank-programs\nrank 0\n  compute 999ms\n");
  EXPECT_EQ(text(1'000'000'000'000), "rank-programs\nrank 0\n  compute 1000000000000ps\n");
}

// The fifth is counted only.
TEST(RankRendezvous, OfFourRanksInACircleAllAreNamed) {
  for (const int32_t count : {4, 5}) {
    RankPrograms ring;
    for (int32_t rank = 0; rank < count; ++rank) {
      ring.ranks.push_back({{.kind = StepKind::kSend, .peer = (rank + 1) % count, .line = 1},
                            {.kind = StepKind::kReceive, .peer = (rank + count - 1) % count}});
    }
    const std::string error = JoinError(ring);
    EXPECT_THAT(error, HasSubstr("with tag 0 (line 1); "));
    EXPECT_EQ(absl::StrContains(error, "; and 1 more; wanted"), count == 5) << error;
    EXPECT_EQ(absl::StrContains(error, " more; wanted"), count == 5) << error;
  }
}

TEST(RankRendezvous, AreRowsOfWhoMeetsWhom) {
  const RankPrograms programs = ParseRanks(R"(rank-programs
communicator pair 1,0
rank 0
  a: compute 1ps
  wait a on data
  barrier pair on data
  send to 1 8
rank 1
  receive from 0 8
  barrier pair on data
)");
  const absl::StatusOr<RendezvousTable> table = FindRendezvous(programs);
  ASSERT_TRUE(table.ok()) << table.status();
  ASSERT_EQ(table->size(), 3);
  const auto row = [&](int32_t rendezvous) {
    std::string text;
    for (const StepPosition& position : table->row(rendezvous)) {
      absl::StrAppend(&text, text.empty() ? "" : " ", position.rank, ".", position.step);
    }
    return text;
  };
  EXPECT_EQ(row(0), "0.0");
  EXPECT_EQ(row(1), "1.1 0.2") << "in the order of the communicator";
  EXPECT_EQ(row(2), "0.3 1.0") << "the sender first";
  EXPECT_THAT(table->of[0], ElementsAre(0, -1, 1, 2));
  EXPECT_THAT(table->of[1], ElementsAre(2, 1));
  std::vector<std::string> waits;
  for (const RendezvousWait& wait : WaitsOf(programs, *table)) {
    waits.push_back(absl::StrCat(wait.after, " at ", wait.position.rank, ".", wait.position.step,
                                 " for ", wait.before, " of step ", wait.before_step,
                                 wait.by_name ? " by name" : ""));
  }
  EXPECT_THAT(waits, ElementsAre("1 at 0.2 for 0 of step 0 by name", "2 at 0.3 for 0 of step 0"));
}

// Of those between the same two ranks, the one of the least tag.
TEST(RankRendezvous, ANearMissIsNamed) {
  const auto error = [](absl::string_view text) {
    return std::string(FindRendezvous(ParseRanks(text)).status().message());
  };
  EXPECT_EQ(error(R"(rank-programs
rank 0
  send to 1 8 tag 1
rank 1
  receive from 0 8 tag 7
  receive from 0 8 tag 5
)"),
            "rank 0 (line 3): send to rank 1 of 8 B with tag 1 has no other end: rank 1 has only 0 "
            "such receives, and rank 1 (line 6) has one with tag 5; wanted a receive on rank 1");
  EXPECT_EQ(error(R"(rank-programs
rank 0
  send to 1 8 tag 1
rank 1
  compute 1ps
rank 2
  receive from 0 8 tag 3
)"),
            "rank 0 (line 3): send to rank 1 of 8 B with tag 1 has no other end: rank 1 has only 0 "
            "such receives; wanted a receive on rank 1");
}

}  // namespace
}  // namespace rank_programs_limits_test_cc
}  // namespace orrery::simulator
