#include "simulator/report/bubble.h"

#include <gtest/gtest.h>

#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "simulator/engine/longest_path.h"
#include "simulator/program/program_test_util.h"
#include "simulator/testing/random_program.h"

namespace orrery::simulator {
namespace bubble_test_cc {
namespace {

// "warm-up steady cool-down imbalance" of each rank.
std::string BubblesOf(const Program& program) {
  const Trace trace = RunLongestPath(program);
  const auto bubbles = SplitBubbles(Summarize(program, trace), IdleEndsOf(program, trace));
  return absl::StrJoin(bubbles.rows(), ", ", [](std::string* out, const Bubble& bubble) {
    absl::StrAppend(out, bubble.warm_up.picoseconds(), " ", bubble.steady.picoseconds(), " ",
                    bubble.cool_down.picoseconds(), " ", bubble.imbalance.picoseconds());
  });
}

std::string BubblesOf(absl::string_view tasks) {
  return BubblesOf(Parse(absl::StrCat(R"(program
rank0 "pp0" members 0 stage 0
rank1 "pp1" members 1 stage 1
stream0 rank0 compute
stream1 rank1 compute
stream2 rank0 send-next
stream3 rank1 receive-previous
label0 "F" compute forward stage 0
label1 "B" compute backward stage 0
label2 "Send" send forward stage 0 bytes 8
)",
                                      tasks)));
}

// rank 0 | F0 F1 .. .. B0 B0 .. B1 B1
// rank 1 | .. F0 B0 B0 F1 B1 B1 .. ..
TEST(Bubble, Of1f1bFillsAndDrains) {
  EXPECT_EQ(BubblesOf(R"(
task0 stream0 label0 takes 1 ps
task1 stream0 label0 takes 1 ps
task2 stream1 label0 takes 1 ps after task0
task3 stream1 label1 takes 2 ps
task4 stream1 label0 takes 1 ps
task5 stream1 label1 takes 2 ps
task6 stream0 label1 takes 2 ps after task3
task7 stream0 label1 takes 2 ps after task5
)"),
            "2 0 1 0, 1 0 2 0");
}

// Rank 0 computes for 8, rank 1 for 6: 2 of the 3 for which rank 1 cools down are due to that.
// rank 0 | F0 F1 .. .. B0 B0 B0 B1 B1 B1
// rank 1 | .. F0 B0 B0 F1 B1 B1 .. .. ..
TEST(Bubble, UnequalWorkIsToldApart) {
  EXPECT_EQ(BubblesOf(R"(
task0 stream0 label0 takes 1 ps
task1 stream0 label0 takes 1 ps
task2 stream1 label0 takes 1 ps after task0
task3 stream1 label1 takes 2 ps
task4 stream1 label0 takes 1 ps
task5 stream1 label1 takes 2 ps
task6 stream0 label1 takes 3 ps after task3
task7 stream0 label1 takes 3 ps after task5
)"),
            "2 0 0 0, 1 0 1 2");
}

// The first gap of rank 1 is a wait, and then a send that is no bubble.
TEST(Bubble, IsNeitherWorkNorExposedCommunication) {
  EXPECT_EQ(BubblesOf(R"(
task0 stream0 label0 takes 5 ps
task1 stream2 stream3 label2 takes 3 ps after task0
task2 stream1 label0 takes 4 ps after task1
)"),
            "0 0 4 0, 4 0 0 1");
}

// Without backward there is no steady state but between first and last.
TEST(Bubble, OfARankWithoutBackward) {
  EXPECT_EQ(BubblesOf(R"(
task0 stream0 label0 takes 9 ps
task1 stream1 label0 takes 4 ps
task2 stream1 label0 takes 5 ps after task0
)"),
            "0 0 5 0, 0 5 0 0");
}

TEST(Bubble, OfNothing) { EXPECT_EQ(BubblesOf(""), "0 0 0 0, 0 0 0 0"); }

TEST(Bubble, PartsAddUpToIt) {
  int steady = 0, imbalance = 0;
  for (uint32_t seed = 0; seed < 300; ++seed) {
    SCOPED_TRACE(seed);
    const Program program = RandomProgram({.seed = seed, .one_stream = seed % 3 == 0});
    const Trace trace = RunLongestPath(program);
    const Report report = Summarize(program, trace);
    const auto ends = IdleEndsOf(program, trace);
    const auto bubbles = SplitBubbles(report, ends);
    for (int32_t r = 0; r < program.rank_count(); ++r) {
      const Bubble& bubble = bubbles[RankClassId(r)];
      const Duration idle = report.ranks[RankClassId(r)].idle;
      EXPECT_EQ(bubble.total(), idle);
      EXPECT_LE(ends[RankClassId(r)].before + ends[RankClassId(r)].after, idle);
      for (const Duration part :
           {bubble.warm_up, bubble.steady, bubble.cool_down, bubble.imbalance}) {
        EXPECT_GE(part, Duration(0));
      }
      steady += bubble.steady > Duration(0);
      imbalance += bubble.imbalance > Duration(0);
    }
    const MeanBubble mean = MeanOf(program, bubbles);
    EXPECT_NEAR(mean.warm_up_s + mean.steady_s + mean.cool_down_s + mean.imbalance_s,
                report.bubble_fraction * report.step_time.seconds(), 1e-15);
  }
  EXPECT_GT(steady, 20);
  EXPECT_GT(imbalance, 20);
}

// The report of a steady state has no ends.
TEST(Bubble, OfASteadyStateIsSteadyOrImbalance) {
  Report report;
  report.step_time = Duration(10);
  report.ranks.resize(2);
  report.ranks[RankClassId(0)].idle = Duration(4);
  report.ranks[RankClassId(1)].idle = Duration(7);
  Bubble first, second;
  first.steady = second.steady = Duration(4);
  second.imbalance = Duration(3);
  const auto bubbles = SplitBubbles(report, {});
  EXPECT_EQ(bubbles[RankClassId(0)], first);
  EXPECT_EQ(bubbles[RankClassId(1)], second);
}

}  // namespace
}  // namespace bubble_test_cc
}  // namespace orrery::simulator
