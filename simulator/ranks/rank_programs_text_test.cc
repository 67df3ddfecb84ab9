#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

#include "absl/strings/str_cat.h"
#include "simulator/ranks/rank_programs.h"
#include "simulator/ranks/rank_programs_test_util.h"

namespace orrery::simulator {
namespace rank_programs_text_test_cc {
namespace {

constexpr absl::string_view kText = R"(rank-programs
communicator world 0-3
communicator odd 3,1
rank 0
  a: compute 1.5ms
  b: all-reduce world 67108864 on data
  wait a on side
  send to 2 1000 tag 7 on side
  wait b
  compute 0us
rank 1
  all-reduce world 67108864
  broadcast odd 5
rank 2
  all-reduce world 67108864
  receive from 0 1000 tag 7
rank 3
  all-reduce world 67108864
  broadcast odd 5
rank 4-5
  compute 3599999123456789ps
)";

TEST(RankProgramsText, ReadsBackAsItIsPrinted) {
  EXPECT_EQ(Print(ParseRanks(kText)), kText);
  EXPECT_EQ(JoinError(ParseRanks(kText)), "");
}

TEST(RankProgramsText, CommentsUnitsAndSectionsAreFree) {
  const RankPrograms programs = ParseRanks(R"(
# a comment
rank-programs   # of four ranks
communicator world 0-3
communicator odd 3,1
rank 0-3
  a: compute 1500us   # half of it
  all-reduce world 64MiB

rank 1,3
  broadcast odd 5
  barrier world on side
)");
  EXPECT_EQ(Print(programs), R"(rank-programs
communicator world 0-3
communicator odd 3,1
rank 0
  a: compute 1.5ms
  all-reduce world 67108864
rank 1
  a: compute 1.5ms
  all-reduce world 67108864
  broadcast odd 5
  barrier world 0 on side
rank 2
  a: compute 1.5ms
  all-reduce world 67108864
rank 3
  a: compute 1.5ms
  all-reduce world 67108864
  broadcast odd 5
  barrier world 0 on side
)");
  EXPECT_EQ(programs.communicators[1].line, 5);
  EXPECT_EQ(programs.ranks[3][2].line, 11);
}

TEST(RankProgramsText, SaysWhichLineItCannotRead) {
  const auto error_of = [](absl::string_view lines) {
    const std::string text = absl::StrCat("rank-programs\ncommunicator w 0-1\nrank 0-1\n", lines);
    return std::string(ParseRankPrograms(text, kTestCollectives).status().message());
  };
  EXPECT_EQ(error_of("jump 3"),
            "line 4: found 'jump', wanted compute, send, receive, wait, or one of all-reduce, "
            "all-gather, broadcast, barrier");
  EXPECT_EQ(error_of("a:"),
            "line 4: found the end of the line, wanted compute, send, receive, wait, or one of "
            "all-reduce, all-gather, broadcast, barrier");
  EXPECT_EQ(error_of("compute 5"),
            "line 4: found '5', wanted a duration of at most 3600s such as 1.5ms");
  EXPECT_EQ(error_of("compute 5000s"),
            "line 4: found '5000s', wanted a duration of at most 3600s such as 1.5ms");
  EXPECT_EQ(error_of("compute 5s " + std::string(1'000'000, 'x')),
            "line 4: found '" + std::string(80, 'x') + "', wanted the end of the line");
  EXPECT_EQ(error_of("compute 5s fast"), "line 4: found 'fast', wanted the end of the line");
  EXPECT_EQ(error_of("compute 5s on"),
            "line 4: found the end of the line, wanted the name of a stream");
  EXPECT_EQ(error_of("all-reduce v 5"),
            "line 4: found 'v', wanted a communicator that a line above declares: w");
  EXPECT_EQ(error_of("all-reduce w"),
            "line 4: found the end of the line, wanted a size of at most 1024TiB such as 64MiB");
  EXPECT_EQ(error_of("all-reduce w 2000TiB"),
            "line 4: found '2000TiB', wanted a size of at most 1024TiB such as 64MiB");
  EXPECT_EQ(error_of("send 1 4"), "line 4: found '1', wanted 'to'");
  EXPECT_EQ(error_of("receive from x 4"), "line 4: found 'x', wanted a whole number of 32 bits");
  EXPECT_EQ(error_of("send to 1 4 tag 99999999999"),
            "line 4: found '99999999999', wanted a whole number of 32 bits");
  EXPECT_EQ(error_of("wait a"), "line 4: found 'a', wanted the name of an earlier step of rank 0");
  EXPECT_EQ(error_of("a: compute 1ps\nrank 1-2\nwait a"),
            "line 6: found 'a', wanted the name of an earlier step of rank 2");
  EXPECT_EQ(error_of("a: compute 1ps\na: compute 1ps"),
            "line 5: found 'a:', wanted a name that no step of rank 0 has yet");
  EXPECT_EQ(error_of("a: compute 1ps\nb: wait a"),
            "line 5: found 'b:', wanted no name, as nobody waits for a wait");
  EXPECT_EQ(error_of("communicator w 0"),
            "line 4: found 'w', wanted a name that no communicator has yet");
  EXPECT_EQ(error_of("communicator x 3-1"),
            "line 4: found '3-1', wanted ranks below 1048576 such as 0-3,8");
  EXPECT_EQ(error_of("rank -1"), "line 4: found '-1', wanted ranks below 1048576 such as 0-3,8");
  EXPECT_EQ(error_of("rank 1048576"),
            "line 4: found '1048576', wanted ranks below 1048576 such as 0-3,8");
}

TEST(RankProgramsText, TheHeaderComesFirst) {
  EXPECT_EQ(ParseRankPrograms("", kTestCollectives).status().message(),
            "line 1: found nothing, wanted 'rank-programs'");
  EXPECT_EQ(ParseRankPrograms("\nprogram\n", kTestCollectives).status().message(),
            "line 2: found 'program', wanted 'rank-programs'");
  EXPECT_EQ(ParseRankPrograms("rank-programs\ncompute 1ps", kTestCollectives).status().message(),
            "line 2: found 'compute', wanted 'communicator' or 'rank' and their ranks");
}

TEST(RankProgramsText, SlipsOfThePenFillNoMemory) {
  std::string many = "rank-programs\n";
  for (int i = 0; i < 100; ++i) absl::StrAppend(&many, "rank 0-1048575\n");
  EXPECT_EQ(ParseRankPrograms(many, kTestCollectives).status().message(),
            "line 6: found '0-1048575', wanted fewer ranks in all lines together");
  std::string steps = "rank-programs\nrank 0-199999\n";
  for (int i = 0; i < 100; ++i) absl::StrAppend(&steps, "compute 1ps\n");
  EXPECT_EQ(ParseRankPrograms(steps, kTestCollectives).status().message(),
            "line 8: found the end of the line, wanted fewer steps of all ranks together");
}

// Bytes changed, lines doubled, dropped and swapped: whatever comes out, it is read and joined to
// an end, and what could be read reads back.
TEST(RankProgramsText, AnyTextComesToAnEnd) {
  std::mt19937 random(1);
  int read = 0;
  for (int round = 0; round < 3000; ++round) {
    std::string text(kText);
    for (size_t changes = 1 + random() % 2; changes > 0; --changes) {
      const size_t at = random() % text.size();
      const size_t end = std::min(text.find('\n', at), text.size() - 1);
      switch (random() % 4) {
        case 0:
          text[at] = static_cast<char>(random() % 128);
          break;
        case 1:
          text[at] = kText[random() % kText.size()];
          break;
        case 2:
          text.erase(at, end - at);
          break;
        default:
          text.insert(random() % text.size(), text.substr(at, end + 1 - at));
      }
    }
    const absl::StatusOr<RankPrograms> programs = ParseRankPrograms(text, kTestCollectives);
    if (!programs.ok()) continue;
    ++read;
    JoinError(*programs);
    if (!Verify(*programs).ok()) continue;
    EXPECT_EQ(Print(ParseRanks(Print(*programs))), Print(*programs));
  }
  EXPECT_GT(read, 100);
}

}  // namespace
}  // namespace rank_programs_text_test_cc
}  // namespace orrery::simulator
