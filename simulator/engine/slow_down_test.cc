#include "simulator/engine/slow_down.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "simulator/engine/event_queue.h"
#include "simulator/engine/longest_path.h"
#include "simulator/engine/play.h"
#include "simulator/network/fluid_network.h"
#include "simulator/program/program_test_util.h"
#include "simulator/testing/independent_flows.h"
#include "simulator/testing/random_program.h"

namespace orrery::simulator {
namespace slow_down_test_cc {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

Trace PlayEvents(const Program& program) {
  IndependentFlows network(program);
  absl::StatusOr<Trace> trace = RunEvents(program, network);
  EXPECT_TRUE(trace.ok()) << trace.status() << Print(program);
  return trace.ok() ? *std::move(trace) : Trace();
}

// An engine without events: time goes on by one picosecond, and each task that computes does as
// many billionths of a picosecond's work in it as its ranks let it.
class Stepper {
 public:
  explicit Stepper(const Program& program) : program_(program) {
    const size_t count = static_cast<size_t>(program.task_count());
    left_.resize(count);
    started_.resize(count);
    finished_.resize(count);
    trace_.start.resize(count);
    trace_.finish.resize(count);
    for (int32_t i = 0; i < program.task_count(); ++i) left_[Row(i)] = WorkOf(TaskId(i));
  }

  Trace Run() {
    for (Time now;; now += Duration(1)) {
      while (StartAndFinish(now)) {
      }
      if (std::find(finished_.begin(), finished_.end(), false) == finished_.end()) break;
      Step();
    }
    for (const Time finish : trace_.finish) trace_.makespan = std::max(trace_.makespan, finish);
    return trace_;
  }

 private:
  static size_t Row(int32_t task) { return static_cast<size_t>(task); }

  int64_t WorkOf(TaskId task) const {
    const FlowId flow = program_.flow_of(task);
    const Duration alone =
        flow.valid() ? TimeAlone(program_.flow(flow), program_) : program_.duration(task);
    return alone.picoseconds() * 1'000'000'000;
  }

  bool Communicates(int32_t task) const {
    return program_.label(program_.label_of(TaskId(task))).kind != TaskKind::kCompute;
  }

  // Whether all tasks before it on its streams, and all that it depends on, have finished.
  bool Ready(int32_t task) const {
    for (const TaskId before : program_.dependencies_of(TaskId(task))) {
      if (!finished_[Row(before.index())]) return false;
    }
    for (int32_t before = 0; before < task; ++before) {
      if (finished_[Row(before)]) continue;
      for (const StreamId stream : program_.streams_of(TaskId(task))) {
        const std::span<const StreamId> others = program_.streams_of(TaskId(before));
        if (std::find(others.begin(), others.end(), stream) != others.end()) return false;
      }
    }
    return true;
  }

  bool StartAndFinish(Time now) {
    bool any = false;
    for (int32_t i = 0; i < program_.task_count(); ++i) {
      if (!started_[Row(i)] && Ready(i)) {
        started_[Row(i)] = any = true;
        trace_.start[Row(i)] = now;
      }
      if (started_[Row(i)] && !finished_[Row(i)] && left_[Row(i)] <= 0) {
        finished_[Row(i)] = any = true;
        trace_.finish[Row(i)] = now;
      }
    }
    return any;
  }

  bool Busy(RankClassId rank) const {
    for (int32_t i = 0; i < program_.task_count(); ++i) {
      if (!started_[Row(i)] || finished_[Row(i)] || !Communicates(i)) continue;
      for (const StreamId stream : program_.streams_of(TaskId(i))) {
        if (program_.stream(stream).rank == rank) return true;
      }
    }
    return false;
  }

  void Step() {
    for (int32_t i = 0; i < program_.task_count(); ++i) {
      if (!started_[Row(i)] || finished_[Row(i)]) continue;
      int64_t speed = 1'000'000'000;
      for (const StreamId stream : program_.streams_of(TaskId(i))) {
        const Stream& row = program_.stream(stream);
        if (Communicates(i) || program_.flow_of(TaskId(i)).valid()) break;
        if (row.kind != StreamKind::kCompute || !Busy(row.rank)) continue;
        const double slowdown = program_.rank(row.rank).communication_slowdown;
        speed = std::min<int64_t>(speed, std::llround(1e9 * (1 - slowdown)));
      }
      left_[Row(i)] -= speed;
    }
  }

  const Program& program_;
  std::vector<int64_t> left_;
  std::vector<bool> started_, finished_;
  Trace trace_;
};

// A rank that computes and reduces at the same time; %s is its slow-down.
Program Overlapping(absl::string_view slowdown, absl::string_view tasks) {
  return Parse(absl::StrCat(R"(program
rank0 "r0" members 0-3 stage 0 slowdown )",
                            slowdown, R"(
stream0 rank0 compute
stream1 rank0 data
stream2 rank0 horizontal
stream3 rank0 host
label0 "MatMul" compute forward stage 0
label1 "AllReduce" collective backward stage 0
)",
                            tasks));
}

TEST(SlowDown, ComputeStretchesWhileCommunicationRuns) {
  // 10 ps at full speed, 40 ps at three quarters do 30, and then 60 are left.
  const Trace trace = PlayEvents(Overlapping("0.25", R"(
task0 stream1 label0 takes 10 ps
task1 stream0 label0 takes 100 ps
task2 stream1 label1 takes 40 ps
)"));
  EXPECT_THAT(trace.start, ElementsAre(Time(0), Time(0), Time(10)));
  EXPECT_THAT(trace.finish, ElementsAre(Time(10), Time(110), Time(50)));
  EXPECT_EQ(trace.makespan, Time(110));
}

TEST(SlowDown, TwoAtOnceSlowDownNoMoreThanOne) {
  // From 0 to 40 half speed; 80 of 100 are left.
  const Trace trace = PlayEvents(Overlapping("0.5", R"(
task0 stream0 label0 takes 100 ps
task1 stream1 label1 takes 40 ps
task2 stream2 label1 takes 30 ps
)"));
  EXPECT_EQ(trace.finish[0], Time(120));
}

TEST(SlowDown, CollectivesThatFollowEachOtherAreOneStretch) {
  // Two thirds of the speed throughout: 20 work takes 30, and what is rounded is rounded once.
  const Trace trace = PlayEvents(Overlapping("0.333333333", R"(
task0 stream0 label0 takes 20 ps
task1 stream1 label1 takes 7 ps
task2 stream1 label1 takes 0 ps
task3 stream1 label1 takes 7 ps
task4 stream1 label1 takes 700 ps
)"));
  EXPECT_EQ(trace.finish[0], Time(30));
}

TEST(SlowDown, CopiesToTheHostAndFlowsGoOnAsTheyAre) {
  const Trace trace = PlayEvents(Overlapping("0.5", R"(
flow0 size 50 bytes rate 1000000000000 bytes/s latency 0 ps
task0 stream3 label0 takes 60 ps
task1 stream0 label0 takes flow0
task2 stream1 label1 takes 100 ps
)"));
  EXPECT_THAT(trace.finish, ElementsAre(Time(60), Time(50), Time(100)));
}

// A task that computes on two ranks goes on at the speed of the slower one, whichever comes first.
TEST(SlowDown, ComputeOnUnlikeRanksHasTheSpeedOfTheSlowest) {
  for (const bool swapped : {false, true}) {
    const Program program = Parse(
        absl::StrCat("program\nrank0 \"a\" members 0 stage 0 slowdown ", swapped ? "0.75" : "0.5",
                     "\nrank1 \"b\" members 1 stage 0 slowdown ", swapped ? "0.5" : "0.75", R"(
stream0 rank0 compute
stream1 rank1 compute
stream2 rank0 data
stream3 rank1 data
label0 "MatMul" compute forward stage 0
label1 "AllReduce" collective backward stage 0
task0 stream0 stream1 label0 takes 100 ps
task1 stream2 stream3 label1 takes 80 ps
)"));
    // A quarter of the speed for 80 ps does 20; 80 are left.
    EXPECT_EQ(PlayEvents(program).finish[0], Time(160));
    EXPECT_EQ(Stepper(program).Run().finish[0], Time(160));
  }
}

TEST(SlowDown, AFlowThatIsSlowedByOthersSlowsForLonger) {
  // Both flows share a link of 1 byte a picosecond: each takes 40 ps instead of 20.
  const Program program = Overlapping("0.5", R"(
resource0 "link" "port" capacity 1000000000000 bytes/s latency 0 ps
flow0 size 20 bytes rate 1000000000000 bytes/s latency 0 ps loads resource0 1
task0 stream0 label0 takes 100 ps
task1 stream1 label1 takes flow0
task2 stream2 label1 takes flow0
)");
  FluidNetwork fluid(program);
  const absl::StatusOr<Trace> trace = RunEvents(program, fluid);
  ASSERT_TRUE(trace.ok()) << trace.status();
  EXPECT_THAT(trace->finish, ElementsAre(Time(120), Time(40), Time(40)));
}

TEST(SlowDown, EqualsPicosecondByPicosecond) {
  int moved = 0;
  for (uint32_t seed = 0; seed < 300; ++seed) {
    const RandomProgramOptions options{.seed = seed,
                                       .ranks = 1 + static_cast<int32_t>(seed % 5),
                                       .tasks = 1 + static_cast<int32_t>(seed % 60),
                                       .ordered = seed % 2 == 0,
                                       .flows = seed % 3 == 0,
                                       .slow_down = true};
    const Program program = RandomProgram(options);
    const Trace trace = PlayEvents(program);
    ASSERT_EQ(trace, Stepper(program).Run()) << Print(program);
    moved += trace.makespan > PlayEvents(RandomProgram({.seed = options.seed,
                                                        .ranks = options.ranks,
                                                        .tasks = options.tasks,
                                                        .ordered = options.ordered,
                                                        .flows = options.flows}))
                                  .makespan;
  }
  EXPECT_GT(moved, 60);
}

TEST(SlowDown, OfNothingChangesNothing) {
  for (uint32_t seed = 0; seed < 50; ++seed) {
    const Program plain = RandomProgram({.seed = seed});
    // Too little to count in billionths, and still the engine that counts them.
    const Program slow =
        Parse(absl::StrReplaceAll(Print(plain), {{" stage 0\n", " stage 0 slowdown 1e-12\n"}}));
    EXPECT_TRUE(seed > 0 || NeedsEvents(slow));
    EXPECT_EQ(PlayEvents(slow), RunLongestPath(plain));
  }
}

TEST(SlowDown, OneClassPlaysAsItsMembersDo) {
  constexpr absl::string_view kTasks = R"(
task0 stream0 label0 takes 31 ps
task1 stream1 label1 takes 17 ps
task2 stream0 label0 takes 13 ps after task1
task3 stream1 label1 takes 40 ps
)";
  const Trace folded = PlayEvents(Overlapping("0.3", kTasks));
  Program unfolded;
  for (int32_t member = 0; member < 4; ++member) {
    unfolded.AddRank({.name = "r", .members = {member}, .communication_slowdown = 0.3});
    unfolded.AddStream(RankClassId(member), StreamKind::kCompute);
    unfolded.AddStream(RankClassId(member), StreamKind::kData);
  }
  unfolded.AddLabel({.name = "MatMul"});
  unfolded.AddLabel({.name = "AllReduce", .kind = TaskKind::kCollective});
  const std::vector<StreamId> all = {StreamId(1), StreamId(3), StreamId(5), StreamId(7)};
  const auto compute = [&](int64_t picoseconds, std::vector<TaskId> after) {
    for (int32_t member = 0; member < 4; ++member) {
      unfolded.AddTask(StreamId(2 * member),
                       {.duration = Duration(picoseconds), .label = LabelId(0)}, after);
    }
  };
  compute(31, {});
  const TaskId first = unfolded.AddRendezvous(all, {.duration = Duration(17), .label = LabelId(1)});
  compute(13, {first});
  unfolded.AddRendezvous(all, {.duration = Duration(40), .label = LabelId(1)});
  const Trace trace = PlayEvents(unfolded);
  EXPECT_EQ(trace.makespan, folded.makespan);
  for (size_t member = 0; member < 4; ++member) {
    EXPECT_EQ(trace.finish[member], folded.finish[0]);
    EXPECT_EQ(trace.finish[5 + member], folded.finish[2]);
  }
}

TEST(SlowDown, WhatNeverEndsIsAnError) {
  constexpr absl::string_view kTasks = R"(
task0 stream0 label0 takes 4000000000000000000 ps
task1 stream1 label1 takes 4000000000000000000 ps
)";
  IndependentFlows network;
  EXPECT_TRUE(RunEvents(Overlapping("0", kTasks), network).ok());
  IndependentFlows fresh;
  EXPECT_THAT(std::string(RunEvents(Overlapping("0.9", kTasks), fresh).status().message()),
              HasSubstr("what runs goes on beyond"));
}

TEST(SlowDown, ASlowDownThatEndsInTimeIsNone) {
  // Saturated while the all-reduce runs, and counted out again when it ends.
  const Trace trace = PlayEvents(Overlapping("0.999999999", R"(
task0 stream0 label0 takes 1000000000000000000 ps
task1 stream1 label1 takes 1000000000 ps
)"));
  EXPECT_EQ(trace.finish[0], Time(1'000'000'000'999'999'999));
}

// Likewise where more than half of all time has passed.
TEST(SlowDown, ASlowDownLateInTimeEndsInTime) {
  const Trace trace = PlayEvents(Overlapping("0.999999999", R"(
task0 stream0 label0 takes 3000000000000000000 ps
task1 stream0 label0 takes 1000000000000000000 ps
task2 stream1 label0 takes 7 ps after task0
task3 stream1 label1 takes 1000000000 ps
)"));
  EXPECT_EQ(trace.finish[3], Time(3'000'000'001'000'000'007));
  EXPECT_EQ(trace.finish[1], Time(4'000'000'000'999'999'999));
}

TEST(NeedsEvents, OnlyWhereStreamsOverlap) {
  EXPECT_FALSE(NeedsEvents(Overlapping("0", "")));
  EXPECT_TRUE(NeedsEvents(Overlapping("0.1", "")));
  EXPECT_TRUE(NeedsEvents(RandomProgram({.flows = true})));
  const Program alone = RandomProgram({.seed = 3, .one_stream = true, .slow_down = true});
  EXPECT_FALSE(NeedsEvents(alone));
  EXPECT_EQ(PlayEvents(alone), RunLongestPath(alone));
}

TEST(NeedsEventsDeathTest, TheLongestPathRefusesWhatItCannotPlay) {
  EXPECT_DEATH(RunLongestPath(Overlapping("0.1", "")), "ranks slow down as they communicate");
}

TEST(SlowDown, IsCheckedInProgramsAndTexts) {
  for (const double slowdown : {-0.1, 1.0, std::numeric_limits<double>::quiet_NaN()}) {
    Program program;
    program.AddRank({.name = "r", .members = {0}, .communication_slowdown = slowdown});
    const absl::Status status = program.Verify();
    EXPECT_THAT(std::string(status.message()),
                HasSubstr("program: rank0: a communication slow-down of "));
    IndependentFlows network;
    EXPECT_EQ(RunEvents(program, network).status(), status);
  }
  EXPECT_EQ(ParseProgram("program\nrank0 \"r\" members 0 stage 0 slowdown 1.5").status().message(),
            "line 2: found '1.5', wanted a slow-down of 0 to less than 1");
}

TEST(SlowDown, IsPrintedAndReadBack) {
  const Program program = RandomProgram({.ranks = 4, .slow_down = true});
  const std::string text = Print(program);
  EXPECT_THAT(text, HasSubstr("rank0 \"pp0\" members 0-1 stage 0 slowdown 0.3333333333333333\n"));
  EXPECT_THAT(text,
              HasSubstr("rank1 \"pp1\" members 3-4 stage 1 capacity 5000 bytes slowdown 0.5"));
  EXPECT_EQ(Print(Parse(text)), text);
}

}  // namespace
}  // namespace slow_down_test_cc
}  // namespace orrery::simulator
