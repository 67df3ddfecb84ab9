#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "absl/strings/str_cat.h"
#include "simulator/program/program_test_util.h"
#include "simulator/program/program_text.h"

// What the text of a program may just say, and what it may just not.

namespace orrery::simulator {
namespace program_text_limits_test_cc {
namespace {

using ::testing::ElementsAre;

// Text that reads back to the byte.
void ExpectRoundTrip(const std::string& text) { EXPECT_EQ(Print(Parse(text)), text); }

std::string TroubleOf(absl::string_view lines) {
  return std::string(ParseProgram(absl::StrCat("program\n", lines)).status().message());
}

TEST(ProgramText, KeepsWhatIsSeldomSaid) {
  ExpectRoundTrip(R"(program
rank0 "" members 0-1 stage 0 slowdown 0.25
rank1 "" members 3,5-7 stage -1 capacity 1 bytes slowdown 0.999
resident rank0 gradients 5 bytes
resident rank0 host 7 bytes
resident rank1 optimizer 1 bytes
stream0 rank0 compute
stream1 rank1 host-compute
label0 "AllReduce" collective backward stage 0 bytes -3 communication "all-reduce dp" level "nic"
label1 "Send" send update stage 7 collectives 0 communication "send" level "a \"b\""
label2 "Copy" compute forward stage 0 level "nic"
task0 stream0 stream1 label0 microbatch 0 takes 0 ps
task1 stream0 label1 microbatch -2 takes 1 ps
memory task0 rank0 activations +1 bytes late
memory task0 rank0 activations -1 bytes early
memory task0 rank1 activations +2 bytes
memory task0 rank1 activations -2 bytes
memory task1 rank1 host +0 bytes early
memory task1 rank1 host +0 bytes
)");
}

TEST(ProgramText, ReadsWhenMemoryIsTakenAndGivenBack) {
  const Program program = Parse(R"(program
rank0 "" members 0 stage 0
stream0 rank0 compute
label0 "op" compute forward stage 0
task0 stream0 label0 takes 1 ps
memory task0 rank0 activations +1 bytes late
memory task0 rank0 activations -1 bytes early
memory task0 rank0 activations +1 bytes
)");
  EXPECT_EQ(program.memory_events()[0].moment, MemoryMoment::kFinish);
  EXPECT_EQ(program.memory_events()[1].moment, MemoryMoment::kStart);
  EXPECT_EQ(program.memory_events()[2].moment, MemoryMoment::kBySign);
}

TEST(ProgramText, ReadsWhatIsTheDefault) {
  const Program program = Parse(R"(program
rank0 "" members 16000000-16000001 stage 0 capacity 0 bytes slowdown 0
resident rank0 other 0 bytes
resident rank0 other 2 bytes
resident rank0 other 3 bytes
)");
  EXPECT_THAT(program.rank(RankClassId(0)).members, ElementsAre(16000000, 16000001));
  EXPECT_EQ(program.rank(RankClassId(0)).capacity, Bytes(0));
  EXPECT_EQ(program.resident(RankClassId(0), MemoryKind::kOther), Bytes(5));
}

// A rank class lists its ranks: what a slip of the pen would make of it must not fill memory.
TEST(ProgramText, HasSoManyRanks) {
  const auto trouble_of = [](absl::string_view ranks) {
    return TroubleOf(absl::StrCat("rank0 \"\" members ", ranks, " stage 0\n"));
  };
  EXPECT_EQ(trouble_of("2147483646"), "");
  EXPECT_THAT(trouble_of("2147483647"), testing::HasSubstr("wanted ascending global ranks"));
  EXPECT_THAT(trouble_of("0-2147483647"), testing::HasSubstr("wanted ascending global ranks"));
  EXPECT_THAT(trouble_of("0-16777216"), testing::HasSubstr("wanted ascending global ranks"));
  EXPECT_THAT(trouble_of("0-9999999,10000000-19999999"),
              testing::HasSubstr("wanted at most 16777216 ranks in all classes together"));
  EXPECT_THAT(TroubleOf("rank0 \"\" members 0-16777215 stage 0\n"
                        "rank1 \"\" members 16777216 stage 0\n"),
              testing::HasSubstr("wanted at most 16777216 ranks in all classes together"));
}

TEST(ProgramText, RanksAreSlowedDownByLessThanAll) {
  const auto trouble_of = [](absl::string_view slowdown) {
    return TroubleOf(absl::StrCat("rank0 \"\" members 0 stage 0 slowdown ", slowdown));
  };
  EXPECT_EQ(trouble_of("0"), "");
  EXPECT_EQ(trouble_of("0.99"), "");
  EXPECT_EQ(trouble_of("1"), "line 2: found '1', wanted a slow-down of 0 to less than 1");
  EXPECT_EQ(trouble_of("1.5"), "line 2: found '1.5', wanted a slow-down of 0 to less than 1");
  EXPECT_EQ(trouble_of("-0.1"), "line 2: found '-0.1', wanted a slow-down of 0 to less than 1");
  EXPECT_EQ(trouble_of("x"), "line 2: found 'x', wanted a number");
}

TEST(ProgramText, LoadsGoFromTheLeastToTheMost) {
  const auto trouble_of = [](absl::string_view load) {
    return TroubleOf(
        absl::StrCat("resource0 \"\" \"\" capacity 1 bytes/s latency 0 ps\n"
                     "flow0 size 0 bytes rate 1 bytes/s latency 0 ps loads resource0 ",
                     load));
  };
  EXPECT_EQ(trouble_of("1e-09"), "");
  EXPECT_EQ(trouble_of("1e12"), "");
  EXPECT_EQ(trouble_of("9e-10"), "line 3: found '9e-10', wanted a load of 1e-09 to 1e+12");
  EXPECT_EQ(trouble_of("1.1e12"), "line 3: found '1.1e12', wanted a load of 1e-09 to 1e+12");
}

TEST(ProgramText, MembersAreRangesOfTwoEnds) {
  const auto trouble_of = [](absl::string_view members) {
    return TroubleOf(absl::StrCat("rank0 \"\" members ", members, " stage 0"));
  };
  for (const absl::string_view fine : {"0", "5-5", "0-1,2", "0,2-3,9"}) {
    EXPECT_EQ(trouble_of(fine), "") << fine;
  }
  // The last has one member more than a class may have.
  for (const absl::string_view wrong :
       {"0-1-2", "3-", "-3", "0,", "1,0", "0-2,2", "x", "0-x", "0-16777216"}) {
    EXPECT_EQ(trouble_of(wrong), absl::StrCat("line 2: found '", wrong,
                                              "', wanted ascending global ranks such as 0-3,8"));
  }
}

TEST(ProgramText, TasksThatNeverComeAreNamedWithTheLineThatWants) {
  constexpr absl::string_view kTwo = R"(rank0 "" members 0 stage 0
stream0 rank0 compute
label0 "op" compute forward stage 0
task0 stream0 label0 takes 1 ps after task1
task1 stream0 label0 takes 1 ps
)";
  EXPECT_EQ(TroubleOf(kTwo), "");
  EXPECT_EQ(TroubleOf(absl::StrCat(kTwo, "memory task1 rank0 other +1 bytes\n")), "");
  EXPECT_EQ(TroubleOf(absl::StrCat(kTwo, "memory task2 rank0 other +1 bytes\n")),
            "line 7: found task2, wanted one of the 2 tasks that there are; try adding it");
  EXPECT_EQ(TroubleOf(absl::StrCat(kTwo, "task2 stream0 label0 takes 1 ps after task3\n")),
            "line 7: found task3, wanted one of the 3 tasks that there are; try adding it");
}

TEST(ProgramText, SaysWhichNumberItCannotRead) {
  EXPECT_EQ(TroubleOf("rank0 \"\" members 0 stage 4294967296"),
            "line 2: found '4294967296', wanted a whole number of 32 bits");
  EXPECT_EQ(TroubleOf("rank0 \"\" members 0 stage 0 capacity -1 bytes"),
            "line 2: found '-1', wanted a whole number, 0 or more");
  EXPECT_EQ(TroubleOf("rank0 \"\" members 0 stage 0 capacity 1 byte"),
            "line 2: found 'byte', wanted 'bytes'");
  EXPECT_EQ(TroubleOf("rank0 \"\\q\" members 0 stage 0"),
            "line 2: found '\"\\q\"', wanted a name in double quotes");
  EXPECT_EQ(TroubleOf("rank0 \" members 0 stage 0"),
            "line 2: found '\" members 0 stage 0', wanted a name in double quotes");
  EXPECT_EQ(TroubleOf("rank0 \""), "line 2: found '\"', wanted a name in double quotes");
  EXPECT_EQ(TroubleOf("rank0x"), "line 2: found 'rank0x', wanted 'rank0', as ids count up from 0");
  EXPECT_EQ(TroubleOf("ranks"),
            "line 2: found 'ranks', wanted a line that begins with rank, resident, stream, label, "
            "resource, flow, task or memory");
}

TEST(ProgramText, NobodyReadsAWordOfAMillionLetters) {
  EXPECT_EQ(TroubleOf(std::string(81, 'x')),
            absl::StrCat("line 2: found '", std::string(80, 'x'),
                         "', wanted a line that begins with rank, resident, stream, label, "
                         "resource, flow, task or memory"));
}

}  // namespace
}  // namespace program_text_limits_test_cc
}  // namespace orrery::simulator
