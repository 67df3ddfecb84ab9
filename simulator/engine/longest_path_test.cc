#include "simulator/engine/longest_path.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <string>
#include <utility>
#include <vector>

#include "simulator/program/program_test_util.h"
#include "simulator/testing/random_program.h"

namespace orrery::simulator {
namespace longest_path_test_cc {
namespace {

std::vector<int64_t> Picoseconds(const std::vector<Time>& times) {
  std::vector<int64_t> out;
  for (const Time time : times) out.push_back(time.picoseconds());
  return out;
}

TEST(LongestPath, NothingTakesNoTime) {
  EXPECT_EQ(RunLongestPath(Program()).makespan, Time(0));
  Program streams_only;
  streams_only.AddStream(streams_only.AddRank({.members = {0}}), StreamKind::kCompute);
  EXPECT_EQ(RunLongestPath(streams_only).makespan, Time(0));
}

TEST(LongestPath, StreamsRunInOrderAndMeetInARendezvous) {
  const Program program = Parse(R"(program
rank0 "pp0" members 0 stage 0
rank1 "pp1" members 1 stage 1
stream0 rank0 compute
stream1 rank1 compute
label0 "op" compute forward stage 0
task0 stream0 label0 takes 5 ps
task1 stream1 label0 takes 3 ps
task2 stream0 stream1 label0 takes 2 ps
task3 stream1 label0 takes 4 ps
task4 stream0 label0 takes 1 ps after task3
)");
  const Trace trace = RunLongestPath(program);
  EXPECT_EQ(Picoseconds(trace.start), (std::vector<int64_t>{0, 0, 5, 7, 11}));
  EXPECT_EQ(Picoseconds(trace.finish), (std::vector<int64_t>{5, 3, 7, 11, 12}));
  EXPECT_EQ(trace.makespan, Time(12));
}

TEST(LongestPath, SortsAProgramWhoseDependenciesNameLaterTasks) {
  const Program program = Parse(R"(program
rank0 "" members 0 stage 0
stream0 rank0 compute
stream1 rank0 host
label0 "op" compute forward stage 0
task0 stream0 label0 takes 5 ps after task2
task1 stream1 label0 takes 3 ps
task2 stream1 label0 takes 2 ps
)");
  EXPECT_FALSE(program.ordered());
  EXPECT_EQ(Picoseconds(RunLongestPath(program).start), (std::vector<int64_t>{5, 0, 3}));
}

TEST(LongestPath, EqualsRelaxation) {
  for (uint32_t seed = 0; seed < 200; ++seed) {
    const Program program = RandomProgram({.seed = seed, .ordered = seed % 2 == 0});
    EXPECT_EQ(RunLongestPath(program), RunByRelaxation(program)) << Print(program);
  }
}

TEST(LongestPath, ReusedTraceForgetsTheOldRun) {
  Trace trace;
  RunLongestPath(RandomProgram({.seed = 1, .tasks = 60}), trace);
  const Program program = RandomProgram({.seed = 2, .tasks = 20});
  RunLongestPath(program, trace);
  EXPECT_EQ(trace, RunLongestPath(program));
}

TEST(LongestPath, IsNoShorterThanAnyStream) {
  for (uint32_t seed = 0; seed < 100; ++seed) {
    const Program program = RandomProgram({.seed = seed});
    std::vector<Duration> sums(static_cast<size_t>(program.stream_count()));
    for (int32_t i = 0; i < program.task_count(); ++i) {
      for (const StreamId stream : program.streams_of(TaskId(i))) {
        sums[static_cast<size_t>(stream.index())] += program.duration(TaskId(i));
      }
    }
    EXPECT_GE(RunLongestPath(program).makespan, *std::max_element(sums.begin(), sums.end()));
  }
}

// With fixed stream orders there are no scheduling anomalies (Graham 1969): more work never helps.
TEST(LongestPath, AddingATaskNeverMakesItFaster) {
  for (uint32_t seed = 0; seed < 100; ++seed) {
    Program program = RandomProgram({.seed = seed});
    const Trace before = RunLongestPath(program);
    const TaskId last(program.task_count() - 1);
    program.AddRendezvous(std::array{StreamId(0), StreamId(1)},
                          {.duration = Duration(seed % 3), .label = LabelId(0)}, std::array{last});
    const Trace after = RunLongestPath(program);
    EXPECT_GE(after.makespan, before.makespan);
    EXPECT_TRUE(std::equal(before.start.begin(), before.start.end(), after.start.begin()));
  }
}

TEST(LongestPath, LengtheningATaskDelaysNothingByMore) {
  for (uint32_t seed = 0; seed < 100; ++seed) {
    const std::string text = Print(RandomProgram({.seed = seed}));
    const Program program = Parse(text);
    std::string longer_text = text;
    const size_t position = longer_text.find(" ps", longer_text.find("\ntask7 "));
    longer_text.insert(position, 1, '0');  // ten times the duration
    const Program longer = Parse(longer_text);
    const Duration added = longer.duration(TaskId(7)) - program.duration(TaskId(7));
    const Trace before = RunLongestPath(program);
    const Trace after = RunLongestPath(longer);
    for (size_t i = 0; i < before.start.size(); ++i) {
      EXPECT_GE(after.start[i], before.start[i]);
      EXPECT_LE(after.start[i], before.start[i] + added);
    }
  }
}

TEST(LongestPathDeathTest, RefusesFlowsAndDeadlocks) {
  const Program flows = RandomProgram({.seed = 1, .flows = true});
  ASSERT_TRUE(flows.has_flows());
  EXPECT_DEATH(RunLongestPath(flows), "only a network model can time a flow");
  const Program cycle = Parse(R"(program
rank0 "" members 0 stage 0
stream0 rank0 compute
label0 "op" compute forward stage 0
task0 stream0 label0 takes 5 ps after task0
)");
  EXPECT_DEATH(RunLongestPath(cycle), "deadlock: 1 of 1 tasks");
}

}  // namespace
}  // namespace longest_path_test_cc
}  // namespace orrery::simulator
