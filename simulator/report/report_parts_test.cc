#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "simulator/engine/longest_path.h"
#include "simulator/program/program_test_util.h"
#include "simulator/report/bubble.h"
#include "simulator/report/report.h"
#include "simulator/report/report_details.h"

// The parts of a report one by one, on programs and figures that are small enough to see through.

namespace orrery::simulator {
namespace report_parts_test_cc {
namespace {

using ::testing::ElementsAre;

constexpr RankClassId kFirst(0);

Report ReportOf(const Program& program) { return Summarize(program, RunLongestPath(program)); }

// A label of each kind of communication, and one that never runs between two that do.
constexpr absl::string_view kKinds = R"(program
rank0 "" members 0 stage 0
stream0 rank0 data
label0 "A" collective forward stage 0 bytes 9 communication "all-reduce dp" level "nic"
label1 "B" collective forward stage 0 bytes 8 communication "all-gather dp" level "nic"
label2 "C" collective forward stage 0 bytes 7 communication "all-reduce dp" level "port"
label3 "D" collective forward stage 0 bytes 6 communication "all-reduce dp" level "nic"
label4 "E" compute forward stage 0
label5 "F" send forward stage 0 bytes 5
label6 "G" collective forward stage 0 bytes 4
task0 stream0 label0 takes 10 ps
task1 stream0 label2 takes 21 ps
task2 stream0 label3 takes 30 ps
task3 stream0 label5 takes 41 ps
task4 stream0 label6 takes 50 ps
)";

TEST(CommunicationShares, HaveAColumnForEachKindAndLevel) {
  const CommunicationShares shares(Parse(kKinds));
  std::vector<int32_t> columns;
  for (int32_t label = 0; label < 7; ++label) columns.push_back(shares.column_of(LabelId(label)));
  EXPECT_THAT(columns, ElementsAre(0, 1, 2, 0, -1, 3, 4));
  EXPECT_EQ(shares.column_count(), 5);
}

TEST(CommunicationShares, WhatNeverRunsIsLeftOut) {
  std::vector<std::string> rows;
  for (const CommunicationReport& row : ReportOf(Parse(kKinds)).communication) {
    rows.push_back(absl::StrCat(row.kind, "/", row.level, " ", row.bytes, " ", row.total_s * 1e12));
  }
  EXPECT_THAT(rows, ElementsAre("all-reduce dp/nic 15 40", "all-reduce dp/port 7 21", "send/ 5 41",
                                "collective/ 4 50"));
  EXPECT_DOUBLE_EQ(ReportOf(Parse(kKinds)).exposed_communication_s, 152e-12);
}

TEST(CommunicationShares, AreDividedByTheNumberOfStepsRoundedDown) {
  CommunicationShares shares = ReportOf(Parse(kKinds)).shares;
  shares.at(kFirst, 2).exposed = Duration(11);
  shares.Divide(2);
  EXPECT_EQ(
      shares.at(kFirst, 0),
      (CommunicationShare{.bytes = Bytes(7), .total = Duration(20), .exposed = Duration(20)}));
  EXPECT_EQ(shares.at(kFirst, 2),
            (CommunicationShare{.bytes = Bytes(3), .total = Duration(10), .exposed = Duration(5)}));
}

TEST(CommunicationShares, AddUpAndAreTakenApart) {
  const CommunicationShare more{.bytes = Bytes(7), .total = Duration(20), .exposed = Duration(11)};
  const CommunicationShare less{.bytes = Bytes(3), .total = Duration(5), .exposed = Duration(1)};
  CommunicationShare share = more;
  share -= less;
  EXPECT_EQ(share, (CommunicationShare{Bytes(4), Duration(15), Duration(10)}));
  share += less;
  EXPECT_EQ(share, more);
}

// Means are over all ranks, those that do nothing too: of 1 + 3, one communicates.
TEST(CommunicationShares, MeansAreOfAllRanks) {
  const Report report = ReportOf(Parse(R"(program
rank0 "" members 7 stage 0
rank1 "" members 1-3 stage 0
stream0 rank0 data
label0 "A" send forward stage 0 bytes 8
task0 stream0 label0 takes 40 ps
)"));
  ASSERT_EQ(report.communication.size(), 1u);
  EXPECT_DOUBLE_EQ(report.communication[0].bytes, 2);
  EXPECT_DOUBLE_EQ(report.communication[0].total_s, 10e-12);
  EXPECT_DOUBLE_EQ(report.exposed_communication_s, 10e-12);
  EXPECT_DOUBLE_EQ(report.communication_overhead, 1);
}

// One rank; "before after" of its idle ends.
std::string EndsOf(absl::string_view tasks) {
  const Program program = Parse(absl::StrCat(R"(program
rank0 "" members 0 stage 0
stream0 rank0 compute
stream1 rank0 compute
stream2 rank0 data
stream3 rank0 host
label0 "F" compute forward stage 0
label1 "B" compute backward stage 0
label2 "R" collective update stage 0
label3 "U" compute update stage 0
)",
                                             tasks));
  const IdleEnds ends = IdleEndsOf(program, RunLongestPath(program))[kFirst];
  return absl::StrCat(ends.before.picoseconds(), " ", ends.after.picoseconds());
}

// host | 4 4 4 4 .        a copy is no work
// rank | . . . . B . . F
TEST(IdleEnds, CoolDownBeginsAfterTheLastForward) {
  EXPECT_EQ(EndsOf("task0 stream3 label0 takes 4 ps\n"
                   "task1 stream0 label1 takes 1 ps after task0\n"
                   "task2 stream3 label0 takes 2 ps after task1\n"
                   "task3 stream0 label0 takes 1 ps after task2\n"
                   "task4 stream3 label0 takes 5 ps after task3\n"
                   "task5 stream0 label3 takes 1 ps after task4\n"),
            "4 5");
}

// With backward only there is nothing to warm up for once it began.
// rank | . . B . . . U
TEST(IdleEnds, WithoutForwardCoolDownBeginsWithTheFirstBackward) {
  EXPECT_EQ(EndsOf("task0 stream3 label0 takes 2 ps\n"
                   "task1 stream0 label1 takes 1 ps after task0\n"
                   "task2 stream3 label0 takes 3 ps after task1\n"
                   "task3 stream0 label3 takes 1 ps after task2\n"),
            "2 3");
}

// Not the one that was added last: that on the other stream runs from 10 to 12, the last one from 4
// to 5, and the update from 14.
TEST(IdleEnds, TheLastForwardIsTheOneThatEndsLast) {
  EXPECT_EQ(EndsOf("task0 stream0 label0 takes 1 ps\n"
                   "task1 stream3 label0 takes 3 ps\n"
                   "task2 stream0 label1 takes 1 ps after task1\n"
                   "task3 stream3 label0 takes 7 ps\n"
                   "task4 stream1 label0 takes 2 ps after task3\n"
                   "task5 stream0 label0 takes 1 ps after task2\n"
                   "task6 stream3 label0 takes 4 ps\n"
                   "task7 stream0 label3 takes 1 ps after task6\n"),
            "2 2");
}

// Communication is no bubble, and covers what it overlaps once.
// rank | . . R R R B B
TEST(IdleEnds, CommunicationIsNoBubble) {
  EXPECT_EQ(EndsOf("task0 stream3 label0 takes 2 ps\n"
                   "task1 stream2 label2 takes 3 ps after task0\n"
                   "task2 stream0 label1 takes 2 ps after task1\n"
                   "task3 stream2 label2 takes 3 ps after task1\n"
                   "task4 stream3 label0 takes 6 ps after task3\n"),
            "2 6");
}

std::string BubbleText(const Bubble& bubble) {
  return absl::StrCat(bubble.warm_up.picoseconds(), " ", bubble.steady.picoseconds(), " ",
                      bubble.cool_down.picoseconds(), " ", bubble.imbalance.picoseconds());
}

// Of a step of 20. Rank 0 computes for 15; rank 1 for 8, and so has 7 less to do: 2 of the steady
// part, 4 of cool-down and 1 of warm-up.
TEST(SplitBubbles, ImbalanceIsTakenOutOfSteadyThenCoolDownThenWarmUp) {
  Report report;
  report.step_time = Duration(20);
  report.ranks.resize(2);
  report.ranks[RankClassId(0)].idle = Duration(2);
  report.ranks[RankClassId(0)].exposed_communication = Duration(3);
  report.ranks[RankClassId(1)].idle = Duration(11);
  report.ranks[RankClassId(1)].exposed_communication = Duration(1);
  IdTable<RankClassId, IdleEnds> ends(2);
  ends[RankClassId(0)] = {.before = Duration(2), .after = Duration(9)};
  ends[RankClassId(1)] = {.before = Duration(5), .after = Duration(4)};
  const auto bubbles = SplitBubbles(report, ends);
  EXPECT_EQ(BubbleText(bubbles[RankClassId(0)]), "2 0 0 0");
  EXPECT_EQ(BubbleText(bubbles[RankClassId(1)]), "4 0 0 7");
}

TEST(SplitBubbles, OfOneRankIsWhereItIsIdle) {
  Report report;
  report.step_time = Duration(20);
  report.ranks.resize(1);
  report.ranks[kFirst].idle = Duration(9);
  IdTable<RankClassId, IdleEnds> ends(1);
  ends[kFirst] = {.before = Duration(2), .after = Duration(3)};
  EXPECT_EQ(BubbleText(SplitBubbles(report, ends)[kFirst]), "2 4 3 0");
  EXPECT_EQ(BubbleText(SplitBubbles(report, {})[kFirst]), "0 9 0 0");
}

// A bubble with a rank of each class: 1 and 3 members.
TEST(MeanBubble, IsOfAllRanks) {
  const Program program = Parse(R"(program
rank0 "" members 0 stage 0
rank1 "" members 1-3 stage 0
)");
  IdTable<RankClassId, Bubble> bubbles(2);
  bubbles[RankClassId(0)] = {Duration(4), Duration(8), Duration(12), Duration(16)};
  bubbles[RankClassId(1)] = {Duration(8), Duration(0), Duration(4), Duration(20)};
  const MeanBubble mean = MeanOf(program, bubbles);
  EXPECT_DOUBLE_EQ(mean.warm_up_s, 7e-12);
  EXPECT_DOUBLE_EQ(mean.steady_s, 2e-12);
  EXPECT_DOUBLE_EQ(mean.cool_down_s, 6e-12);
  EXPECT_DOUBLE_EQ(mean.imbalance_s, 19e-12);
  const MeanBubble none = MeanOf(Program(), {});
  EXPECT_EQ(none.warm_up_s, 0);
  EXPECT_EQ(none.imbalance_s, 0);
}

// "time:total" of each point.
std::string Thin(const std::vector<std::pair<int64_t, int64_t>>& points, size_t most) {
  std::vector<MemoryUse> timeline;
  for (const auto& [time, total] : points) {
    timeline.push_back({.time = Time(time), .total = Bytes(total), .by_kind = {}});
  }
  return absl::StrJoin(ThinTimeline(timeline, most), " ", [](std::string* out, const auto& use) {
    absl::StrAppend(out, use.time.picoseconds(), ":", use.total.count());
  });
}

TEST(ThinTimeline, IsTheLargestOfEachPartAndTheLast) {
  // Two parts of 0 to 9: up to 4, and from 5 on; then the end.
  EXPECT_EQ(Thin({{0, 1}, {4, 3}, {5, 2}, {9, 1}}, 3), "4:3 5:2 9:1");
  EXPECT_EQ(Thin({{0, 1}, {4, 3}, {5, 2}, {7, 4}, {9, 1}}, 2), "7:4 9:1");
  // All have room: the largest of each moment, the first of those that are as large.
  EXPECT_EQ(Thin({{0, 1}, {0, 5}, {1, 2}}, 3), "0:5 1:2");
  EXPECT_EQ(Thin({{0, 1}, {1, 2}, {2, 2}}, 3), "0:1 1:2 2:2");
  EXPECT_EQ(Thin({{0, 1}, {1, 7}, {2, 7}, {9, 7}}, 2), "1:7 9:7");
  EXPECT_EQ(Thin({}, 2), "");
}

TEST(PeakTask, NamesTheFirstMicrobatchToo) {
  Program program = Parse(R"(program
rank0 "" members 0 stage 0
stream0 rank0 compute
label0 "MatMul" compute forward stage 3
task0 stream0 label0 microbatch 0 takes 1 ps
task1 stream0 label0 microbatch 1 takes 1 ps
task2 stream0 label0 takes 1 ps
)");
  const auto text = [&](int32_t task) {
    MemoryUse use = {};
    use.task = TaskId(task);
    return PeakTaskText(program, use);
  };
  EXPECT_EQ(text(0), "MatMul, forward of microbatch 0 on stage 3");
  EXPECT_EQ(text(1), "MatMul, forward of microbatch 1 on stage 3");
  EXPECT_EQ(text(2), "MatMul, forward on stage 3");
}

TEST(Composition, CountsTheLastByte) {
  MemoryUse use = {};
  use.by_kind[static_cast<size_t>(MemoryKind::kBuffers)] = Bytes(1);
  EXPECT_EQ(CompositionText(use), "buffers 1 B");
}

// Buffers, and what is lost or reserved already, are no tensors that come and go.
TEST(Fragmentation, LeavesBuffersAndOtherMemoryAlone) {
  const Program program = Parse(R"(program
rank0 "" members 0 stage 0 capacity 1050 bytes
resident rank0 parameters 500 bytes
resident rank0 buffers 400 bytes
resident rank0 other 100 bytes
)");
  Report report = ReportOf(program);
  AddFragmentation(program, 0, report);
  EXPECT_EQ(report.peak_memory, Bytes(1000));
  AddFragmentation(program, 0.1, report);
  EXPECT_EQ(report.ranks[kFirst].memory.total, Bytes(1050));
  EXPECT_EQ(report.ranks[kFirst].memory.of(MemoryKind::kOther), Bytes(150));
  EXPECT_EQ(report.ranks[kFirst].memory.of(MemoryKind::kBuffers), Bytes(400));
  EXPECT_EQ(report.peak_memory, Bytes(1050));
  EXPECT_TRUE(report.fits);
}

}  // namespace
}  // namespace report_parts_test_cc
}  // namespace orrery::simulator
