#include "simulator/report/critical_path.h"

#include <gtest/gtest.h>

#include <string>

#include "absl/strings/str_cat.h"
#include "simulator/engine/play.h"
#include "simulator/program/program_test_util.h"
#include "simulator/testing/random_program.h"

namespace orrery::simulator {
namespace critical_path_test_cc {
namespace {

std::string PathOf(const Program& program) {
  std::string text;
  for (const PathTask& step : CriticalPath(program, Play(program).value())) {
    absl::StrAppend(&text, text.empty() ? "" : " ", step.task.index());
    if (step.waited > Duration()) absl::StrAppend(&text, "+", step.waited.picoseconds());
  }
  return text;
}

// rank 0 | F0 F1 .. .. B0 B0 .. B1 B1
// rank 1 | .. F0 B0 B0 F1 B1 B1 .. ..
TEST(CriticalPath, GoesOverAllRanks) {
  EXPECT_EQ(PathOf(Parse(R"(program
rank0 "pp0" members 0 stage 0
rank1 "pp1" members 1 stage 1
stream0 rank0 compute
stream1 rank1 compute
label0 "F" compute forward stage 0
label1 "B" compute backward stage 0
task0 stream0 label0 takes 1 ps
task1 stream0 label0 takes 1 ps
task2 stream1 label0 takes 1 ps after task0
task3 stream1 label1 takes 2 ps
task4 stream1 label0 takes 1 ps
task5 stream1 label1 takes 2 ps
task6 stream0 label1 takes 2 ps after task3
task7 stream0 label1 takes 2 ps after task5
)")),
            "0 2 3 4 5 7");
}

TEST(CriticalPath, OfNothingIsNothing) { EXPECT_EQ(PathOf(Program()), ""); }

// Each begins when the one before has finished, and together they are the step.
TEST(CriticalPath, AddsUpToTheMakespan) {
  for (uint32_t seed = 0; seed < 200; ++seed) {
    const Program program = RandomProgram({.seed = seed});
    const Trace trace = Play(program).value();
    Duration sum;
    Time at(0);
    for (const PathTask& step : CriticalPath(program, trace)) {
      EXPECT_EQ(trace.start_of(step.task), at + step.waited) << "seed " << seed;
      EXPECT_GE(step.waited, Duration());
      at = trace.finish_of(step.task);
      sum += step.waited + (trace.finish_of(step.task) - trace.start_of(step.task));
    }
    EXPECT_EQ(Time(0) + sum, trace.makespan) << "seed " << seed;
  }
}

}  // namespace
}  // namespace critical_path_test_cc
}  // namespace orrery::simulator
