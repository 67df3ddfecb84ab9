#include "simulator/program/program.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <string>
#include <utility>
#include <vector>

namespace orrery::simulator {
namespace program_test_cc {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

// Two ranks with a compute stream each, and a label.
struct TwoRanks {
  Program program;
  RankClassId first = program.AddRank({.name = "pp0", .members = {0, 2}});
  RankClassId second = program.AddRank({.name = "pp1", .members = {1, 3}, .stage = 1});
  StreamId left = program.AddStream(first, StreamKind::kCompute);
  StreamId right = program.AddStream(second, StreamKind::kCompute);
  LabelId label = program.AddLabel({.name = "MatMul y0"});

  TaskId Add(StreamId stream, int64_t picoseconds, std::span<const TaskId> after = {}) {
    return program.AddTask(stream, {.duration = Duration(picoseconds), .label = label}, after);
  }
  std::string Trouble() const { return std::string(program.Verify().message()); }
};

TEST(Program, KeepsWhatIsAdded) {
  TwoRanks two;
  Program& program = two.program;
  const TaskId a = two.Add(two.left, 5);
  const TaskId b = two.Add(two.right, 7, std::array{a});
  const FlowId flow = program.AddFlow({.size = Bytes(10), .rate = Bandwidth(1), .latency = {}});
  const TaskId c =
      program.AddRendezvous(std::array{two.right, two.left},
                            {.flow = flow, .label = two.label, .microbatch = 3}, std::array{a, b});
  const TaskId d = two.Add(two.left, 1);
  EXPECT_EQ(program.task_count(), 4);
  EXPECT_EQ(program.duration(b), Duration(7));
  EXPECT_THAT(program.streams_of(a), ElementsAre(two.left));
  EXPECT_THAT(program.streams_of(c), ElementsAre(two.right, two.left));
  EXPECT_THAT(program.dependencies_of(a), IsEmpty());
  EXPECT_THAT(program.dependencies_of(c), ElementsAre(a, b));
  EXPECT_THAT(program.dependencies_of(d), IsEmpty());
  EXPECT_EQ(program.microbatch_of(a), -1);
  EXPECT_EQ(program.microbatch_of(c), 3);
  EXPECT_EQ(program.label_of(d), two.label);
  EXPECT_EQ(program.rank(two.second).stage, 1);
  EXPECT_TRUE(program.ordered());
  EXPECT_TRUE(program.Verify().ok()) << program.Verify();
}

TEST(Program, DropsLabelsThatNobodyUses) {
  Program program;
  const LabelId kernel = program.AddLabel({.name = "MatMul y0"});
  const LabelId sum = program.AddLabel({.name = "AllReduce y0", .communication = "all-reduce hp"});
  const std::array parts = {StretchPart{.label = sum, .bytes = Bytes(8)}};
  const LabelId dropped = program.AddStretch({.name = "dropped"}, parts);
  const LabelId stretch = program.AddStretch({.name = "MatMul y0 … Add z"}, parts);
  IdTable<LabelId, char> kept(program.label_count(), 0);
  kept[sum] = kept[stretch] = 1;
  const IdTable<LabelId, LabelId> ids = program.KeepLabels(kept);
  EXPECT_EQ(program.label_count(), 2);
  EXPECT_FALSE(ids[kernel].valid());
  EXPECT_FALSE(ids[dropped].valid());
  EXPECT_EQ(ids[sum], LabelId(0));
  EXPECT_EQ(program.label(ids[sum]).name, "AllReduce y0");
  EXPECT_EQ(program.label(ids[sum]).communication, "all-reduce hp");
  EXPECT_EQ(program.label(ids[stretch]).name, "MatMul y0 … Add z");
  ASSERT_EQ(program.parts_of(ids[stretch]).size(), 1u);
  EXPECT_EQ(program.parts_of(ids[stretch])[0].label, ids[sum]);
  EXPECT_EQ(program.parts_of(ids[stretch])[0].bytes, Bytes(8));
}

TEST(Program, TasksBeforeAndAfterTheFirstFlowHaveNone) {
  TwoRanks two;
  const TaskId before = two.Add(two.left, 1);
  EXPECT_FALSE(two.program.has_flows());
  EXPECT_FALSE(two.program.flow_of(before).valid());
  const FlowId flow = two.program.AddFlow({.rate = Bandwidth(1)});
  const TaskId timed = two.program.AddTask(two.left, {.flow = flow, .label = two.label});
  const TaskId after = two.Add(two.left, 1);
  EXPECT_TRUE(two.program.has_flows());
  EXPECT_FALSE(two.program.flow_of(before).valid());
  EXPECT_EQ(two.program.flow_of(timed), flow);
  EXPECT_FALSE(two.program.flow_of(after).valid());
}

TEST(Program, ResidentsAddUp) {
  TwoRanks two;
  two.program.AddResident(two.first, MemoryKind::kParameters, Bytes(10));
  two.program.AddResident(two.first, MemoryKind::kParameters, Bytes(5));
  EXPECT_EQ(two.program.resident(two.first, MemoryKind::kParameters), Bytes(15));
  EXPECT_EQ(two.program.resident(two.first, MemoryKind::kGradients), Bytes(0));
  EXPECT_EQ(two.program.resident(two.second, MemoryKind::kParameters), Bytes(0));
}

TEST(Program, ReserveChangesNothingThatOneCanSee) {
  TwoRanks two;
  two.program.Reserve(100);
  EXPECT_EQ(two.program.task_count(), 0);
  two.Add(two.left, 5);
  EXPECT_EQ(two.program.task_count(), 1);
}

TEST(Program, IsOrderedWhileDependenciesNameEarlierTasks) {
  for (const int32_t named : {-1, 1, 2}) {  // none, itself, a later one
    TwoRanks two;
    two.Add(two.left, 1);
    two.Add(two.left, 1, std::array{TaskId(0)});
    EXPECT_TRUE(two.program.ordered());
    two = TwoRanks();
    two.Add(two.left, 1);
    two.Add(two.left, 1, std::array{TaskId(named)});
    EXPECT_FALSE(two.program.ordered()) << named;
  }
}

TEST(ProgramVerify, FindsIdsOutOfRange) {
  TwoRanks stream;
  stream.Add(StreamId(2), 1);
  EXPECT_EQ(stream.Trouble(),
            "program: task0: names stream2, wanted one of the 2 that there are; try adding it "
            "first");
  TwoRanks label;
  label.program.AddTask(label.left, {.duration = Duration(1)});
  EXPECT_THAT(label.Trouble(), HasSubstr("task0: names label<none>, wanted one of the 1"));
  TwoRanks flow;
  flow.program.AddTask(flow.left, {.flow = FlowId(0), .label = flow.label});
  EXPECT_THAT(flow.Trouble(), HasSubstr("task0: names flow0, wanted one of the 0"));
  TwoRanks dependency;
  dependency.Add(dependency.left, 1, std::array{TaskId(7)});
  EXPECT_THAT(dependency.Trouble(), HasSubstr("task0: names task7, wanted one of the 1"));
  TwoRanks rank;
  rank.program.AddStream(RankClassId(5), StreamKind::kHost);
  EXPECT_THAT(rank.Trouble(), HasSubstr("stream2: names rank5, wanted one of the 2"));
}

TEST(ProgramVerify, FindsMemoryEventsOfNobody) {
  TwoRanks task;
  task.program.AddMemoryEvent(
      {.task = TaskId(0), .rank = task.first, .kind = MemoryKind::kOther, .bytes = 1});
  EXPECT_THAT(task.Trouble(), HasSubstr("memory event: names task0"));
  TwoRanks rank;
  rank.Add(rank.left, 1);
  rank.program.AddMemoryEvent(
      {.task = TaskId(0), .rank = RankClassId(2), .kind = MemoryKind::kOther, .bytes = 1});
  EXPECT_THAT(rank.Trouble(), HasSubstr("memory event: names rank2"));
}

TEST(ProgramVerify, FindsWhatMakesNoSense) {
  TwoRanks twice;
  twice.program.AddRendezvous(std::array{twice.left, twice.right, twice.left},
                              {.label = twice.label});
  EXPECT_EQ(twice.Trouble(),
            "program: task0: stream0 twice in a rendezvous, wanted different streams; try naming "
            "each stream once");
  TwoRanks negative;
  negative.Add(negative.left, -3);
  EXPECT_THAT(negative.Trouble(), HasSubstr("task0: a duration of -3 ps, wanted 0 ps or more"));
  TwoRanks still;
  still.program.AddFlow({.size = Bytes(1)});
  EXPECT_THAT(still.Trouble(),
              HasSubstr("flow0: a size of 1 bytes, a rate of 0 bytes/s, a latency of 0 ps, "
                        "wanted size >= 0, rate > 0, latency >= 0"));
}

TEST(ProgramVerify, FindsResourcesAndLoadsThatCarryNothing) {
  const auto trouble_of = [](const Resource& resource, const std::vector<Load>& loads) {
    TwoRanks two;
    two.program.AddResource({.name = "up", .capacity = Bandwidth(5)});
    two.program.AddResource(resource);
    two.program.AddFlow({.size = Bytes(1), .rate = Bandwidth(1), .loads = loads});
    return two.Trouble();
  };
  const Resource down = {.name = "down", .capacity = Bandwidth(7)};
  const ResourceId one(1);
  EXPECT_EQ(trouble_of(down, {{ResourceId(0)}, {one, 2.5}}), "");
  EXPECT_EQ(trouble_of({.name = "down"}, {}),
            "program: resource1 'down': a capacity of 0 bytes/s, wanted more than 0 bytes/s; try "
            "leaving out a link that carries nothing");
  EXPECT_THAT(trouble_of({.capacity = Bandwidth(-1)}, {}), HasSubstr("a capacity of -1 bytes/s"));
  EXPECT_THAT(trouble_of({.capacity = Bandwidth(1), .latency = Duration(-4)}, {}),
              HasSubstr("resource1 '': a latency of -4 ps, wanted 0 ps or more"));
  EXPECT_EQ(trouble_of(down, {{ResourceId(2)}}),
            "program: flow0: names resource2, wanted one of the 2 that there are; try adding it "
            "first");
  EXPECT_THAT(trouble_of(down, {{ResourceId()}}), HasSubstr("names resource<none>"));
  EXPECT_EQ(trouble_of(down, {{one}, {ResourceId(0)}, {one}}),
            "program: flow0: resource1 twice, wanted each resource once; try adding the loads up");
  for (const double load : {0.0, -1.0, std::nan(""), 1e300, 1e-300}) {
    EXPECT_THAT(trouble_of(down, {{one, load}}), HasSubstr(" on resource1, wanted 1e-09 to 1e+12"));
  }
}

TEST(Program, FlowsKeepTheirLoads) {
  Program program;
  const ResourceId up = program.AddResource({.name = "up", .capacity = Bandwidth(5)});
  const ResourceId down = program.AddResource({.name = "down", .capacity = Bandwidth(5)});
  std::vector<Load> loads = {{up}, {down, 0.5}};
  const FlowId both = program.AddFlow({.size = Bytes(1), .rate = Bandwidth(5), .loads = loads});
  loads = {{down, 3}};
  const FlowId one = program.AddFlow({.size = Bytes(2), .rate = Bandwidth(5), .loads = loads});
  const FlowId none = program.AddFlow({.size = Bytes(3), .rate = Bandwidth(5)});
  const Program copy = program;
  program = Program();
  EXPECT_EQ(copy.resource(down).name, "down");
  ASSERT_EQ(copy.flow(both).loads.size(), 2u);
  EXPECT_EQ(copy.flow(both).loads[1].resource, down);
  EXPECT_EQ(copy.flow(both).loads[1].load, 0.5);
  ASSERT_EQ(copy.flow(one).loads.size(), 1u);
  EXPECT_EQ(copy.flow(one).loads[0].load, 3);
  EXPECT_TRUE(copy.flow(none).loads.empty());
}

TEST(ProgramVerify, FindsMembersThatAreNotASet) {
  const std::vector<std::pair<std::vector<int32_t>, std::string>> cases = {
      {{}, "rank2: no members"},
      {{5, 4}, "rank2: members out of order or negative"},
      {{4, 4}, "rank2: members out of order or negative"},
      {{-1, 4}, "rank2: members out of order or negative"},
      {{2, 4}, "ranks: global rank 2 in two classes"}};
  for (const auto& [members, trouble] : cases) {
    TwoRanks two;
    two.program.AddRank({.members = members});
    EXPECT_THAT(two.Trouble(), HasSubstr(trouble));
  }
}

TEST(ProgramVerify, PrintsTheCycleOfADeadlock) {
  TwoRanks two;
  two.Add(two.left, 1, std::array{TaskId(3)});
  two.Add(two.left, 1);
  two.Add(two.right, 1, std::array{TaskId(1)});
  two.Add(two.right, 1);
  EXPECT_EQ(two.Trouble(),
            "program: deadlock: 4 of 4 tasks can never start: "
            "task0 \"MatMul y0\" (rank0 compute) waits for task3, which it depends on; "
            "task3 \"MatMul y0\" (rank1 compute) waits for task2, before it on rank1 compute; "
            "task2 \"MatMul y0\" (rank1 compute) waits for task1, which it depends on; "
            "task1 \"MatMul y0\" (rank0 compute) waits for task0, before it on rank0 compute, "
            "wanted an order in which each task runs after all that it waits for; try adding the "
            "tasks of each stream in the order in which they run");
}

TEST(ProgramNames, AreDistinct) {
  EXPECT_EQ(ToString(StreamKind::kReceivePrevious), "receive-previous");
  EXPECT_EQ(ToString(StreamKind::kHost), "host");
  EXPECT_EQ(ToString(TaskKind::kSend), "send");
  EXPECT_EQ(ToString(MemoryKind::kOther), "other");
  EXPECT_EQ(ToString(Phase::kUpdate), "update");
}

}  // namespace
}  // namespace program_test_cc
}  // namespace orrery::simulator
