#include "simulator/traces/microbatch_spans.h"

#include <gtest/gtest.h>

#include "simulator/engine/longest_path.h"
#include "simulator/program/program_test_util.h"

namespace orrery::simulator {
namespace microbatch_spans_test_cc {
namespace {

// Two kernels forward and two backward of each of two microbatches, first all forward; an update.
const char kProgram[] = R"(program
rank0 "" members 0 stage 0
stream0 rank0 compute
label0 "F" compute forward stage 0
label1 "B" compute backward stage 0
label2 "U" compute update stage 0
task0 stream0 label0 microbatch 0 takes 10 ps
task1 stream0 label0 microbatch 0 takes 10 ps
task2 stream0 label0 microbatch 1 takes 10 ps
task3 stream0 label0 microbatch 1 takes 10 ps
task4 stream0 label1 microbatch 0 takes 10 ps
task5 stream0 label1 microbatch 0 takes 10 ps
task6 stream0 label1 microbatch 1 takes 10 ps
task7 stream0 label1 microbatch 1 takes 10 ps
task8 stream0 label2 takes 10 ps
task9 stream0 label2 takes 10 ps
)";

struct Found {
  std::vector<MicrobatchSpan> spans;
  Updates updates;
};

Found Find() {
  const Program program = Parse(kProgram);
  const Trace trace = RunLongestPath(program);
  const RankTasks tasks(program);
  Found found;
  found.spans = MicrobatchSpansOf(program, trace, tasks.of(RankClassId(0)), &found.updates);
  return found;
}

TEST(MicrobatchSpans, GoFromTheFirstForwardToTheLastBackward) {
  const std::vector<MicrobatchSpan> spans = Find().spans;
  ASSERT_EQ(spans.size(), 2u);
  EXPECT_EQ(spans[0].start, Time(0));
  EXPECT_EQ(spans[0].finish, Time(60));
  EXPECT_EQ(spans[1].start, Time(20));
  EXPECT_EQ(spans[1].finish, Time(80));
}

TEST(MicrobatchSpans, KnowTheKernelsBetweenWhichTheyTurn) {
  const std::vector<MicrobatchSpan> spans = Find().spans;
  EXPECT_EQ(spans[0].last_forward, TaskId(1));
  EXPECT_EQ(spans[0].first_backward, TaskId(4));
  EXPECT_EQ(spans[1].last_forward, TaskId(3));
  EXPECT_EQ(spans[1].first_backward, TaskId(6));
}

TEST(MicrobatchSpans, EndWithTheUpdate) {
  const Updates updates = Find().updates;
  EXPECT_EQ(updates.last_backward, TaskId(7));
  EXPECT_EQ(updates.first, TaskId(8));
  EXPECT_EQ(updates.finishes, (std::vector{Time(90), Time(100)}));
}

TEST(InFlight, CountsWhatHasBegunAndNotEnded) {
  std::vector<std::pair<int64_t, int32_t>> counts;
  for (const InFlight& count : InFlightOf(Find().spans)) {
    counts.emplace_back(count.time.picoseconds(), count.microbatches);
  }
  EXPECT_EQ(counts, (std::vector<std::pair<int64_t, int32_t>>{{0, 1}, {20, 2}, {60, 1}, {80, 0}}));
}

}  // namespace
}  // namespace microbatch_spans_test_cc
}  // namespace orrery::simulator
