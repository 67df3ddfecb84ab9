#include "simulator/ranks/rank_programs.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "simulator/engine/longest_path.h"
#include "simulator/program/program_text.h"
#include "simulator/ranks/rank_programs_test_util.h"

namespace orrery::simulator {
namespace rank_programs_test_cc {
namespace {

using ::testing::HasSubstr;

constexpr absl::string_view kOverlap = R"(rank-programs
communicator world 0-1
rank 0-1
  first: compute 10ps
  wait first on data
  reduced: all-reduce world 4 on data
  compute 7ps
  wait reduced
  compute 1ps
rank 0
  send to 1 3 tag 5
rank 1
  receive from 0 3 tag 5
)";

TEST(RankPrograms, BecomeOneProgram) {
  Program program;
  TestMachine machine;
  ASSERT_TRUE(Join(ParseRanks(kOverlap), machine, program).ok());
  EXPECT_EQ(Print(program), R"(program
rank0 "r" members 0 stage 0
rank1 "r" members 1 stage 0
stream0 rank0 compute
stream1 rank0 data
stream2 rank1 compute
stream3 rank1 data
label0 "first" compute forward stage 0
label1 "compute" compute forward stage 0
label2 "all-reduce world" collective forward stage 0 bytes 4 communication "all-reduce world"
label3 "send 0 to 1 tag 5" send forward stage 0 bytes 3 communication "send"
task0 stream0 label0 takes 10 ps
task1 stream2 label0 takes 10 ps
task2 stream0 label1 takes 7 ps
task3 stream1 stream3 label2 takes 8 ps after task0 task1
task4 stream2 label1 takes 7 ps
task5 stream0 label1 takes 1 ps after task3
task6 stream2 label1 takes 1 ps after task3
task7 stream0 stream2 label3 takes 6 ps
)");
  // 10, the all-reduce that takes 8 beside the compute that takes 7, 1, and the message.
  EXPECT_EQ(RunLongestPath(program).makespan, Time(25));
}

TEST(RankPrograms, EqualCallsAreAskedForOnce) {
  Program program;
  TestMachine machine;
  const RankPrograms programs = ParseRanks(R"(rank-programs
communicator world 0-2
communicator one 1
rank 0-2
  all-reduce world 4
  all-reduce world 4
  all-reduce world 5
  barrier world
rank 1
  all-reduce one 7
)");
  ASSERT_TRUE(Join(programs, machine, program).ok());
  EXPECT_EQ(machine.calls, 3);
  EXPECT_EQ(RunLongestPath(program).makespan, Time(12 + 12 + 15)) << "one rank reduces nothing";
}

// Reports add up the bytes of labels.
TEST(RankPrograms, CallsOfUnlikeSizesHaveLabelsOfTheirOwn) {
  Program program;
  TestMachine machine;
  const RankPrograms programs = ParseRanks(R"(rank-programs
communicator world 0-1
rank 0-1
  all-reduce world 4
  all-reduce world 8
  all-reduce world 4
)");
  ASSERT_TRUE(Join(programs, machine, program).ok());
  ASSERT_EQ(program.label_count(), 2);
  const auto bytes = [&](int32_t task) {
    return program.label(program.label_of(TaskId(task))).bytes;
  };
  EXPECT_EQ(bytes(0), Bytes(4));
  EXPECT_EQ(bytes(1), Bytes(8));
  EXPECT_EQ(bytes(2), Bytes(4));
}

TEST(RankPrograms, StreamsAreOfTheKindThatTheySay) {
  Program program;
  TestMachine machine;
  const RankPrograms programs = ParseRanks(R"(rank-programs
communicator world 0
rank 0
  compute 1ps on side
  compute 1ps on host
  all-reduce world 1 on side
  all-reduce world 1 on lane
  all-reduce world 1 on horizontal
)");
  ASSERT_TRUE(Join(programs, machine, program).ok());
  const StreamKind kinds[] = {StreamKind::kCompute, StreamKind::kHost, StreamKind::kData,
                              StreamKind::kHorizontal};
  for (int32_t i = 0; i < 4; ++i) EXPECT_EQ(program.stream(StreamId(i)).kind, kinds[i]);
}

TEST(RankPrograms, MessagesOfOneTagMeetInTheirOrder) {
  EXPECT_EQ(JoinError(ParseRanks(R"(rank-programs
rank 0
  send to 1 1
  send to 1 2
  send to 1 3 tag 9 on side
rank 1
  receive from 0 3 tag 9 on side
  receive from 0 1
  receive from 0 2
)")),
            "");
}

struct Fault {
  std::string name;
  std::string text;  // after the header and the communicators
  std::string error;
};

void PrintTo(const Fault& fault, std::ostream* out) { *out << fault.name; }

class RankFaults : public testing::TestWithParam<Fault> {};

TEST_P(RankFaults, AreNamedWithBothEnds) {
  const std::string text =
      absl::StrCat("rank-programs\ncommunicator all 0-2\ncommunicator pair 1,0\n", GetParam().text);
  EXPECT_EQ(JoinError(ParseRanks(text)), GetParam().error);
}

INSTANTIATE_TEST_SUITE_P(
    Kinds, RankFaults,
    testing::ValuesIn(std::vector<Fault>{
        {"KindsDiffer", "rank 0-1\n all-reduce all 8\nrank 2\n all-gather all 8\n",
         "communicator 'all', call 0: rank 0 (line 5) calls all-reduce of 8 bytes, rank 2 (line 7) "
         "all-gather of 8 bytes; wanted the same kinds and sizes in the same order on all its "
         "ranks"},
        {"SizesDiffer",
         "rank 0-2\n barrier all\nrank 0,2\n all-reduce all 8\nrank 1\n all-reduce all 9\n",
         "communicator 'all', call 1: rank 0 (line 7) calls all-reduce of 8 bytes, rank 1 (line 9) "
         "all-reduce of 9 bytes; wanted the same kinds and sizes in the same order on all its "
         "ranks"},
        {"OneCallsLess", "rank 0-2\n all-reduce all 8\nrank 0,2\n all-reduce all 8\n",
         "communicator 'all': rank 0 (line 7) calls all-reduce of 8 B in 'all' as call 1, and rank "
         "1 (line 5), the last time, calls it only 1 times; wanted as many calls on all its ranks"},
        {"OneNeverCalls", "rank 1-2\n all-reduce all 8\n",
         "communicator 'all': rank 1 (line 5) calls all-reduce of 8 B in 'all' as call 0, and rank "
         "0 calls it only 0 times; wanted as many calls on all its ranks"},
        {"OrdersDiffer",
         "rank 0\n all-reduce all 8\n compute 1ps\n all-reduce pair 8\nrank 1\n all-reduce pair 8\n"
         " all-reduce all 8\nrank 2\n all-reduce all 8\n",
         "ranks wait for each other in a circle: rank 0 (line 7) comes to all-reduce of 8 B in "
         "'pair' after all-reduce of 8 B in 'all' (line 5); rank 1 (line 10) comes to all-reduce "
         "of 8 B in 'all' after all-reduce of 8 B in 'pair' (line 9); wanted one order on all "
         "ranks; try streams of their own for what may overlap"},
        {"BothSendFirst",
         "rank 0\n send to 1 8\n receive from 1 8\nrank 1\n send to 0 8\n receive from 0 8\n"
         "rank 2\n",
         "ranks wait for each other in a circle: rank 0 (line 6) comes to receive from rank 1 of 8 "
         "B with tag 0 after send to rank 1 of 8 B with tag 0 (line 5); rank 1 (line 9) comes to "
         "receive from rank 0 of 8 B with tag 0 after send to rank 0 of 8 B with tag 0 (line 8); "
         "wanted one order on all ranks; try streams of their own for what may overlap"},
        {"SendWithoutReceive", "rank 0\n send to 1 8 tag 3\nrank 1\nrank 2\n",
         "rank 0 (line 5): send to rank 1 of 8 B with tag 3 has no other end: rank 1 has only 0 "
         "such receives; wanted a receive on rank 1"},
        {"ReceiveWithoutSend",
         "rank 0\n send to 1 8\nrank 1\n receive from 0 8\n receive from 0 8\nrank 2\n",
         "rank 1 (line 8): receive from rank 0 of 8 B with tag 0 has no other end: rank 0 has only "
         "1 such sends; wanted a send on rank 0"},
        {"TagsDiffer", "rank 0\n send to 1 8 tag 3\nrank 1\n receive from 0 8 tag -4\nrank 2\n",
         "rank 1 (line 7): receive from rank 0 of 8 B with tag -4 has no other end: rank 0 has "
         "only 0 such sends, and rank 0 (line 5) has one with tag 3; wanted a send on rank 0"},
        {"MessageSizesDiffer", "rank 0\n send to 1 8\nrank 1\n receive from 0 9\nrank 2\n",
         "rank 0 (line 5) sends 8 bytes to rank 1 (line 7), which receives 9 bytes with tag 0; "
         "wanted the same size at both ends"},
        {"SendToItself", "rank 2\n send to 2 8\n",
         "rank 2 (line 5): send to rank 2 of 8 B with tag 0: rank 2 is sender and receiver; wanted "
         "another rank as peer"},
        {"SendToNobody", "rank 2\n send to 7 8\n",
         "rank 2 (line 5): send to rank 7 of 8 B with tag 0: there is no rank 7; wanted one of the "
         "3 ranks that have a program"},
        {"NoMember", "rank 2\n all-reduce pair 8\n",
         "rank 2 (line 5): all-reduce of 8 B in 'pair': rank 2 is no member of 'pair', which rank "
         "1 "
         "is; wanted a communicator that it belongs to"},
        {"RankTwice", "communicator odd 1,0-1\nrank 0-2\n",
         "communicator 'odd' (line 4): rank 1 twice; wanted each rank once"},
    }),
    [](const testing::TestParamInfo<Fault>& info) { return info.param.name; });

TEST(RankPrograms, LongCirclesAreCutShort) {
  RankPrograms ring;
  for (int32_t rank = 0; rank < 100; ++rank) {
    ring.ranks.push_back({{.kind = StepKind::kSend, .peer = (rank + 1) % 100},
                          {.kind = StepKind::kReceive, .peer = (rank + 99) % 100}});
  }
  const std::string error = JoinError(ring);
  EXPECT_THAT(error, HasSubstr("rank 3 (step 1) comes to receive from rank 2"));
  EXPECT_THAT(error, HasSubstr("; and 96 more; wanted one order on all ranks"));
}

// What no text can say, but a caller in C++.
TEST(RankPrograms, VerifyFindsWhatIsOutOfRange) {
  const auto error_of = [](const RankStep& step) {
    return std::string(
        Verify({.communicators = {{.name = "w", .ranks = {0}}}, .ranks = {{step}}}).message());
  };
  constexpr int32_t kMost = std::numeric_limits<int32_t>::max();
  EXPECT_EQ(error_of({.kind = StepKind::kCollective, .collective = "all-reduce"}),
            "rank 0 (step 0): all-reduce: got communicator -1; wanted one of the 1 that there are");
  EXPECT_THAT(error_of({.kind = StepKind::kCollective, .collective = "x", .communicator = kMost}),
              HasSubstr("one of the 1 that there are"));
  EXPECT_THAT(error_of({.kind = StepKind::kCollective, .collective = "a b", .communicator = 0}),
              HasSubstr("wanted a kind"));
  EXPECT_THAT(error_of({.kind = StepKind::kSend, .peer = -1}), HasSubstr("there is no rank -1"));
  EXPECT_THAT(error_of({.kind = StepKind::kWait, .earlier = 0}), HasSubstr("before its own, 0"));
  EXPECT_THAT(error_of({.duration = Duration(-1)}), HasSubstr("got -1 ps; wanted 0 ps to an hour"));
  EXPECT_THAT(error_of({.size = Bytes(-1)}), HasSubstr("got -1 bytes"));
  EXPECT_THAT(error_of({.name = "a b"}), HasSubstr("wanted words"));
  EXPECT_THAT(error_of({.stream = ""}), HasSubstr("wanted words"));
  EXPECT_EQ(error_of({}), "");
}

TEST(RankPrograms, VerifyFindsWhatIsWrongTogether) {
  EXPECT_THAT(std::string(Verify({.communicators = {{.name = "w", .ranks = {0}},
                                                    {.name = "w", .ranks = {0}}},
                                  .ranks = {{}}})
                              .message()),
              HasSubstr("communicator 'w': is there twice"));
  EXPECT_THAT(std::string(Verify({.communicators = {{.name = "w"}}}).message()),
              HasSubstr("has no ranks"));
  EXPECT_THAT(std::string(Verify({.communicators = {{.name = "w", .ranks = {3}}}}).message()),
              HasSubstr("has rank 3; wanted one of the 0 ranks"));
  const RankStep unnamed = {};
  const RankStep wait = {.kind = StepKind::kWait, .earlier = 0};
  EXPECT_THAT(std::string(Verify({.ranks = {{unnamed, wait}}}).message()),
              HasSubstr("rank 0 (step 1): wait: got step 0; wanted one that has a name"));
  const RankStep named = {.name = "a"};
  EXPECT_THAT(std::string(Verify({.ranks = {{named, named}}}).message()),
              HasSubstr("got 'a' again; wanted each once in a rank"));
  RankPrograms large{.ranks = {{}, {}}};
  for (int i = 0; i < 5000; ++i) {
    large.ranks[0].push_back({.kind = StepKind::kSend, .size = kLargestMessage, .peer = 1});
  }
  EXPECT_THAT(std::string(Verify(large).message()), HasSubstr("more than 4 EiB"));
}

TEST(RankPrograms, ErrorsOfTheMachineNameTheStep) {
  Program program;
  TestMachine machine;
  machine.broken = "all-reduce";
  EXPECT_EQ(Join(ParseRanks(kOverlap), machine, program).message(),
            "rank 0 (line 6): all-reduce of 4 B in 'world': is not for this machine");
  Program second;
  TestMachine small;
  small.positions = 1;
  EXPECT_EQ(Join(ParseRanks(kOverlap), small, second).message(), "rank: the machine is full");
}

TEST(RankProgramsDeathTest, TheProgramMustBeEmpty) {
  Program program;
  program.AddRank({});
  TestMachine machine;
  EXPECT_DEATH(Join({}, machine, program).IgnoreError(), "program is not empty");
}

}  // namespace
}  // namespace rank_programs_test_cc
}  // namespace orrery::simulator
