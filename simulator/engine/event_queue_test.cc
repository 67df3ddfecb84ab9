#include "simulator/engine/event_queue.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <string>
#include <utility>
#include <vector>

#include "simulator/engine/longest_path.h"
#include "simulator/program/program_test_util.h"
#include "simulator/testing/independent_flows.h"
#include "simulator/testing/random_program.h"

namespace orrery::simulator {
namespace event_queue_test_cc {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

Trace Play(const Program& program) {
  IndependentFlows network;
  absl::StatusOr<Trace> trace = RunEvents(program, network);
  EXPECT_TRUE(trace.ok()) << trace.status();
  return *std::move(trace);
}

// The same program with each flow replaced by the time that it takes alone.
Program WithoutFlows(const Program& program) {
  Program timed;
  for (int32_t i = 0; i < program.rank_count(); ++i) timed.AddRank(program.rank(RankClassId(i)));
  for (int32_t i = 0; i < program.stream_count(); ++i) {
    timed.AddStream(program.stream(StreamId(i)).rank, program.stream(StreamId(i)).kind);
  }
  for (int32_t i = 0; i < program.label_count(); ++i) timed.AddLabel(program.label(LabelId(i)));
  for (int32_t i = 0; i < program.task_count(); ++i) {
    const TaskId id(i);
    const FlowId flow = program.flow_of(id);
    const Duration duration = flow.valid() ? TimeAlone(program.flow(flow)) : program.duration(id);
    timed.AddRendezvous(program.streams_of(id),
                        {.duration = duration, .label = program.label_of(id)},
                        program.dependencies_of(id));
  }
  return timed;
}

// One link that all messages share evenly: a message of n bytes alone takes n picoseconds.
class SharedLink : public NetworkModel {
 public:
  void Start(TaskId message, const Flow& flow) override {
    active_.push_back({message, flow.size.count()});
  }
  std::optional<Time> NextCompletion(Time now) override {
    if (active_.empty()) return std::nullopt;
    int64_t least = active_.front().left;
    for (const Message& message : active_) least = std::min(least, message.left);
    return now + Duration(least * static_cast<int64_t>(active_.size()));
  }
  std::span<const TaskId> Advance(Time to) override {
    arrived_.clear();
    const int64_t share =
        active_.empty() ? 0 : (to - now_).picoseconds() / static_cast<int64_t>(active_.size());
    now_ = to;
    for (Message& message : active_) {
      message.left -= share;
      if (message.left == 0) arrived_.push_back(message.task);
    }
    std::erase_if(active_, [](const Message& message) { return message.left == 0; });
    return arrived_;
  }

 private:
  struct Message {
    TaskId task;
    int64_t left;
  };
  Time now_;
  std::vector<Message> active_;
  std::vector<TaskId> arrived_;
};

constexpr absl::string_view kTwoRanks = R"(program
rank0 "pp0" members 0 stage 0
rank1 "pp1" members 1 stage 1
stream0 rank0 compute
stream1 rank1 compute
label0 "op" compute forward stage 0
label1 "send" send forward stage 0
)";

TEST(RunEvents, NothingTakesNoTime) { EXPECT_EQ(Play(Program()).makespan, Time(0)); }

TEST(RunEvents, EqualsLongestPathWithoutFlows) {
  for (uint32_t seed = 0; seed < 300; ++seed) {
    const Program program = RandomProgram({.seed = seed,
                                           .ranks = 1 + static_cast<int32_t>(seed % 5),
                                           .tasks = 1 + static_cast<int32_t>(seed % 60),
                                           .ordered = seed % 2 == 0});
    const Trace trace = Play(program);
    EXPECT_EQ(trace, RunLongestPath(program)) << Print(program);
    EXPECT_EQ(trace, RunByRelaxation(program)) << Print(program);
  }
}

TEST(RunEvents, EqualsLongestPathWithTheTimeOfEachFlowAlone) {
  for (uint32_t seed = 0; seed < 200; ++seed) {
    const Program program = RandomProgram({.seed = seed, .ordered = seed % 2 == 0, .flows = true});
    ASSERT_TRUE(program.has_flows());
    EXPECT_EQ(Play(program), RunLongestPath(WithoutFlows(program))) << Print(program);
  }
}

TEST(RunEvents, EqualsLongestPathOnManyRanks) {
  const Program program = RandomProgram({.seed = 5, .ranks = 64, .tasks = 5000});
  EXPECT_EQ(Play(program), RunLongestPath(program));
}

TEST(RunEvents, RepeatsItself) {
  const Program program = RandomProgram({.seed = 9, .tasks = 200, .flows = true});
  EXPECT_EQ(Play(program), Play(program));
}

TEST(RunEvents, FlowsThatShareALinkSlowEachOther) {
  const Program program = Parse(absl::StrCat(kTwoRanks, R"(
flow0 size 10 bytes rate 1000000000000 bytes/s latency 0 ps
task0 stream0 label1 takes flow0
task1 stream1 label0 takes 4 ps
task2 stream1 label1 takes flow0
task3 stream0 label0 takes 1 ps
)"));
  // Flow of task 0 alone for 4 ps; then both at half the rate: 6 bytes more take 12 ps, to 16, and
  // the 4 bytes that are left of the other arrive alone, at 20.
  SharedLink link;
  const absl::StatusOr<Trace> trace = RunEvents(program, link);
  ASSERT_TRUE(trace.ok()) << trace.status();
  EXPECT_THAT(trace->start, ElementsAre(Time(0), Time(0), Time(4), Time(16)));
  EXPECT_THAT(trace->finish, ElementsAre(Time(16), Time(4), Time(20), Time(17)));
  EXPECT_EQ(trace->makespan, Time(20));
  const Trace alone = Play(program);
  EXPECT_THAT(alone.finish, ElementsAre(Time(10), Time(4), Time(14), Time(11)));
}

TEST(RunEvents, ReportsADeadlockWithBothEnds) {
  // Each rank sends first and receives second: the classic.
  const Program program = Parse(absl::StrCat(kTwoRanks, R"(
stream2 rank0 send-next
stream3 rank1 send-previous
task0 stream0 label0 takes 5 ps
task1 stream2 label1 microbatch 0 takes 1 ps after task3
task2 stream2 stream3 label1 microbatch 1 takes 1 ps
task3 stream3 label1 microbatch 1 takes 1 ps
task4 stream1 label0 takes 1 ps after task3
)"));
  IndependentFlows network;
  const absl::Status status = RunEvents(program, network).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(std::string(status.message()),
            "simulation: deadlock at 5 ps: 4 of 5 tasks never start: "
            "task1 \"send\" (rank0 send-next) waits for task3, which it depends on; "
            "task3 \"send\" (rank1 send-previous) waits for task2, before it on rank1 "
            "send-previous; "
            "task2 \"send\" (rank0 send-next, rank1 send-previous) waits for task1, before it on "
            "rank0 send-next, "
            "wanted an order in which each task runs after all that it waits for; try adding the "
            "tasks of each stream in the order in which they run");
}

TEST(RunEvents, FindsADeadlockExactlyWhenVerifyDoes) {
  int deadlocks = 0;
  for (uint32_t seed = 0; seed < 200; ++seed) {
    Program program = RandomProgram({.seed = seed, .ordered = false});
    // One more dependency, of any kind: some close a cycle.
    const std::string text = Print(program);
    const size_t task = text.find("\ntask3 ");
    const size_t end = text.find('\n', task + 1);
    const bool has_any = text.substr(task, end - task).find(" after ") != std::string::npos;
    const std::string more = absl::StrCat(has_any ? " task" : " after task", 4 + seed % 30);
    program = Parse(text.substr(0, end) + more + text.substr(end));
    IndependentFlows network;
    const absl::StatusOr<Trace> trace = RunEvents(program, network);
    EXPECT_EQ(trace.ok(), program.Verify().ok()) << trace.status() << program.Verify();
    deadlocks += !trace.ok();
  }
  EXPECT_GT(deadlocks, 20);
  EXPECT_LT(deadlocks, 180);
}

TEST(RunEventsDeathTest, ChecksItsBoundaries) {
  IndependentFlows used;
  used.Start(TaskId(0), {.size = Bytes(1), .rate = Bandwidth(1), .latency = {}});
  EXPECT_DEATH(RunEvents(Program(), used).IgnoreError(), "the network is not fresh");
}

}  // namespace
}  // namespace event_queue_test_cc
}  // namespace orrery::simulator
