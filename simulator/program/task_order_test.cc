#include "simulator/program/task_order.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <string>
#include <utility>
#include <vector>

#include "simulator/program/program_test_util.h"
#include "simulator/testing/random_program.h"

namespace orrery::simulator {
namespace task_order_test_cc {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr absl::string_view kTwoStreams = R"(program
rank0 "" members 0 stage 0
stream0 rank0 compute
stream1 rank0 host
label0 "op" compute forward stage 0
)";

TEST(Successors, NameWhoWaitsOncePerReason) {
  const Program program = Parse(absl::StrCat(kTwoStreams, R"(
task0 stream0 stream1 label0 takes 1 ps
task1 stream1 stream0 label0 takes 1 ps after task0
task2 stream1 label0 takes 1 ps after task0
)"));
  const SuccessorRows rows = Successors(program);
  EXPECT_THAT(rows.of(0), ElementsAre(1, 1, 1, 2));
  EXPECT_THAT(rows.of(1), ElementsAre(2));
  EXPECT_THAT(rows.of(2), IsEmpty());
  EXPECT_THAT(rows.waits_for, ElementsAre(0, 3, 2));
  EXPECT_THAT(rows.begin, ElementsAre(0, 4, 5, 5));
  EXPECT_THAT(Successors(Program()).waits_for, IsEmpty());
}

TEST(RunnableOrder, KeepsEveryWait) {
  for (uint32_t seed = 0; seed < 100; ++seed) {
    const Program program = RandomProgram({.seed = seed, .ordered = seed % 2 == 0});
    const std::vector<TaskId> order = RunnableOrder(program);
    ASSERT_EQ(order.size(), static_cast<size_t>(program.task_count()));
    std::vector<int> position(order.size(), -1);
    for (size_t i = 0; i < order.size(); ++i) {
      position[static_cast<size_t>(order[i].index())] = static_cast<int>(i);
    }
    const SuccessorRows rows = Successors(program);
    for (int32_t task = 0; task < program.task_count(); ++task) {
      ASSERT_GE(position[static_cast<size_t>(task)], 0);
      for (const int32_t after : rows.of(task)) {
        EXPECT_LT(position[static_cast<size_t>(task)], position[static_cast<size_t>(after)]);
      }
    }
  }
}

TEST(RunnableOrder, LeavesOutTheCycleAndWhatIsBehindIt) {
  const Program program = Parse(absl::StrCat(kTwoStreams, R"(
task0 stream0 label0 takes 1 ps
task1 stream0 label0 takes 1 ps after task2
task2 stream1 label0 takes 1 ps after task1
task3 stream1 label0 takes 1 ps
)"));
  EXPECT_THAT(RunnableOrder(program), ElementsAre(TaskId(0)));
  EXPECT_THAT(std::string(VerifyAcyclic(program).message()), HasSubstr("3 of 4 tasks"));
}

TEST(DescribeCycle, LeavesOutTheWayToTheCycle) {
  const Program program = Parse(absl::StrCat(kTwoStreams, R"(
task0 stream0 label0 takes 1 ps after task1
task1 stream1 label0 takes 1 ps after task1
)"));
  EXPECT_EQ(DescribeCycle(program, {false, false}),
            "task1 \"op\" (rank0 host) waits for task1, which it depends on");
}

// A chain of waits half a million long: the message must not take quadratic time.
TEST(DescribeCycle, IsLinear) {
  Program program;
  const RankClassId rank = program.AddRank({.members = {0}});
  const StreamId stream = program.AddStream(rank, StreamKind::kCompute);
  const StreamId other = program.AddStream(rank, StreamKind::kHost);
  const LabelId label = program.AddLabel({.name = "op"});
  const TaskId first = program.AddTask(stream, {.label = label}, std::array{TaskId(0)});
  constexpr int32_t kTasks = 500'000;
  for (int32_t i = 1; i < kTasks; ++i) program.AddTask(other, {.label = label}, std::array{first});
  std::vector<bool> finished(kTasks);
  EXPECT_EQ(DescribeCycle(program, finished),
            "task0 \"op\" (rank0 compute) waits for task0, which it depends on");
}

TEST(Describe, NamesAllStreams) {
  const Program program = Parse(absl::StrCat(kTwoStreams, R"(
task0 stream0 stream1 label0 takes 1 ps
)"));
  EXPECT_EQ(Describe(program, TaskId(0)), "task0 \"op\" (rank0 compute, rank0 host)");
}

// A message about a program that need not verify.
TEST(Describe, GoesWithoutALabel) {
  Program program;
  const RankClassId rank = program.AddRank({.members = {0}});
  const StreamId stream = program.AddStream(rank, StreamKind::kHost);
  const TaskId none = program.AddTask(stream, {});
  const TaskId late = program.AddTask(stream, {.label = LabelId(0)});
  EXPECT_EQ(Describe(program, none), "task0 \"\" (rank0 host)");
  EXPECT_EQ(Describe(program, late), "task1 \"\" (rank0 host)");
  program.AddLabel({.name = "op"});
  EXPECT_EQ(Describe(program, late), "task1 \"op\" (rank0 host)");
}

TEST(VerifyAcyclic, CountsWhatCanNeverStart) {
  const Program program = Parse(absl::StrCat(kTwoStreams, R"(
task0 stream0 label0 takes 1 ps
task1 stream1 label0 takes 1 ps after task2
task2 stream1 label0 takes 1 ps
)"));
  EXPECT_EQ(VerifyAcyclic(program).message(),
            "program: deadlock: 2 of 3 tasks can never start: "
            "task1 \"op\" (rank0 host) waits for task2, which it depends on; "
            "task2 \"op\" (rank0 host) waits for task1, before it on rank0 host, wanted an order "
            "in which each task runs after all that it waits for; try adding the tasks of each "
            "stream in the order in which they run");
  EXPECT_TRUE(VerifyAcyclic(Program()).ok());
}

TEST(DescribeCycleDeathTest, NeedsATaskThatNeverRan) {
  const Program program = Parse(absl::StrCat(kTwoStreams, "task0 stream0 label0 takes 1 ps\n"));
  EXPECT_DEATH(DescribeCycle(program, {true}), "no task is left over");
}

}  // namespace
}  // namespace task_order_test_cc
}  // namespace orrery::simulator
