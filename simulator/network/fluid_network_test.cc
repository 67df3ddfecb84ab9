#include "simulator/network/fluid_network.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <limits>
#include <string>
#include <vector>

#include "simulator/engine/event_queue.h"
#include "simulator/program/program_test_util.h"
#include "simulator/testing/independent_flows.h"
#include "simulator/testing/random_program.h"

namespace orrery::simulator {
namespace fluid_network_test_cc {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

std::vector<Time> Finishes(const Program& program) {
  FluidNetwork network(program);
  const absl::StatusOr<Trace> trace = RunEvents(program, network);
  EXPECT_TRUE(trace.ok()) << trace.status();
  return trace->finish;
}

// Links of a byte a picosecond, and of half of that.
constexpr absl::string_view kLinks = R"(program
rank0 "" members 0 stage 0
stream0 rank0 compute
stream1 rank0 data
stream2 rank0 horizontal
label0 "op" send forward stage 0
resource0 "up" "port" capacity 1000000000000 bytes/s latency 0 ps
resource1 "down" "port" capacity 500000000000 bytes/s latency 0 ps
)";

// When two flows end that begin together, each on a stream of its own.
std::vector<Time> FinishesOfTwo(absl::string_view first, absl::string_view second) {
  return Finishes(Parse(absl::StrCat(kLinks, "flow0 ", first, "\nflow1 ", second,
                                     "\ntask0 stream0 label0 takes flow0\n"
                                     "task1 stream1 label0 takes flow1\n")));
}

TEST(FluidNetwork, TwoMessagesShareALink) {
  const Program program = Parse(absl::StrCat(kLinks, R"(
flow0 size 100 bytes rate 1000000000000 bytes/s latency 7 ps loads resource0 1
flow1 size 10 bytes rate 1000000000000 bytes/s latency 0 ps loads resource0 1
task0 stream0 label0 takes flow0
task1 stream1 label0 takes 30 ps
task2 stream1 label0 takes flow1
)"));
  // 30 bytes alone; then both at half the rate until 50, when the second has gone; the 60 bytes
  // that are left take 60 ps, and the last one 7 ps more.
  EXPECT_THAT(Finishes(program), ElementsAre(Time(117), Time(30), Time(50)));
}

// To the picosecond: 1 TB and 3 TB share a byte a picosecond for 2 seconds, then the second has 2
// TB left.
TEST(FluidNetwork, LongFlowsAreExact) {
  const std::vector<Time> finishes = FinishesOfTwo(
      "size 3000000000000 bytes rate 1000000000000 bytes/s latency 7 ps loads resource0 1",
      "size 1000000000000 bytes rate 1000000000000 bytes/s latency 0 ps loads resource0 1");
  EXPECT_THAT(finishes, ElementsAre(Time(4'000'000'000'007), Time(2'000'000'000'000)));
}

TEST(FluidNetwork, ALinkIsFreeWhenTheLastByteIsSent) {
  const std::vector<Time> finishes =
      FinishesOfTwo("size 10 bytes rate 1000000000000 bytes/s latency 1000 ps loads resource0 1",
                    "size 30 bytes rate 1000000000000 bytes/s latency 0 ps loads resource0 1");
  // Both at half the rate for 20 ps; the second then sends its 20 bytes alone.
  EXPECT_THAT(finishes, ElementsAre(Time(1020), Time(40)));
}

TEST(FluidNetwork, ACollectiveIsAFlowWithLoads) {
  const Program program = Parse(absl::StrCat(kLinks, R"(
flow0 size 60 bytes rate 1000000000000 bytes/s latency 0 ps loads resource0 3 resource1 1
flow1 size 60 bytes rate 1000000000000 bytes/s latency 0 ps loads resource0 1
task0 stream0 label0 takes flow0
task1 stream1 label0 takes 180 ps
task2 stream1 label0 takes flow0
task3 stream2 label0 takes 180 ps
task4 stream2 label0 takes flow1
)"));
  // Alone 60 x 3 ps; with a message beside it, both go at a quarter.
  EXPECT_THAT(Finishes(program),
              ElementsAre(Time(180), Time(180), Time(420), Time(180), Time(420)));
}

TEST(FluidNetwork, RoundsUpToPicosecondsButNotTwice) {
  const Program program = Parse(absl::StrCat(kLinks, R"(
resource2 "odd" "port" capacity 3000000000000 bytes/s latency 0 ps
flow0 size 10 bytes rate 3000000000000 bytes/s latency 0 ps loads resource2 1
flow1 size 9 bytes rate 3000000000000 bytes/s latency 0 ps loads resource2 1
task0 stream0 label0 takes flow0
task1 stream1 label0 takes flow1
task2 stream2 label0 takes flow1
)"));
  // At a byte a picosecond each: 9 ps, and the last byte takes a third.
  EXPECT_THAT(Finishes(program), ElementsAre(Time(10), Time(9), Time(9)));
}

TEST(FluidNetwork, AFlowAloneTakesTimeAloneToThePicosecond) {
  const std::vector<int64_t> capacities = {
      3, 7, 1'000'003, 25'000'000'000, 53'687'091'200, 999'999'999'999};
  const std::vector<int64_t> sizes = {1, 2, 1000, 67'108'864, 1'234'567'891};
  for (const int64_t capacity : capacities) {
    for (const int64_t size : sizes) {
      for (const double load : {1.0, 2.0, 3.0, 0.5, 1023.0, 1.0 / 3}) {
        Program program;
        const ResourceId link = program.AddResource({.capacity = Bandwidth(capacity)});
        const std::array loads = {Load{link, load}};
        program.AddFlow({.size = Bytes(size),
                         .rate = Bandwidth(1'000'000'000'000),
                         .latency = Duration(11),
                         .loads = loads});
        FluidNetwork network(program);
        const Flow flow = program.flow(FlowId(0));
        if (TimeAlone(flow, program) == kEndOfTime) continue;
        network.Start(TaskId(0), flow);
        const Time sent = *network.NextCompletion(Time(0));
        EXPECT_EQ(sent + Duration(11), TimeAlone(flow, program));
        EXPECT_THAT(network.Advance(sent), IsEmpty());
        EXPECT_EQ(network.NextCompletion(sent), sent + Duration(11));
        EXPECT_THAT(network.Advance(sent + Duration(11)), ElementsAre(TaskId(0)));
        EXPECT_EQ(network.NextCompletion(sent + Duration(11)), std::nullopt);
      }
    }
  }
}

TEST(FluidNetwork, EqualsIndependentFlowsWhereNothingIsShared) {
  for (uint32_t seed = 0; seed < 50; ++seed) {
    const Program program = RandomProgram({.seed = seed, .flows = true});
    IndependentFlows independent(program);
    EXPECT_EQ(Finishes(program), RunEvents(program, independent)->finish);
  }
}

TEST(FluidNetwork, StartsOfAMomentAreOneChange) {
  Program program;
  const ResourceId link = program.AddResource({.capacity = Bandwidth(1'000'000'000'000)});
  const std::array loads = {Load{link}};
  program.AddFlow({.size = Bytes(5), .rate = Bandwidth(1'000'000'000'000), .loads = loads});
  FluidNetwork network(program);
  for (const int32_t task : {5, 3, 8, 1}) network.Start(TaskId(task), program.flow(FlowId(0)));
  EXPECT_EQ(network.NextCompletion(Time(0)), Time(20));
  EXPECT_THAT(network.Advance(Time(12)), IsEmpty());
  // In the order in which they started, whatever the heap does.
  EXPECT_THAT(network.Advance(Time(20)), ElementsAre(TaskId(5), TaskId(3), TaskId(8), TaskId(1)));
}

// The same flows in another order of the streams: the same times.
TEST(FluidNetwork, SymmetricFlowsAreEqual) {
  Program program;
  const RankClassId rank = program.AddRank({.members = {0}});
  const LabelId label = program.AddLabel({.name = "ring"});
  std::vector<ResourceId> links;
  for (int i = 0; i < 24; ++i) {
    links.push_back(program.AddResource({.capacity = Bandwidth(53'687'091'200)}));
  }
  for (size_t i = 0; i < links.size(); ++i) {
    const std::array loads = {Load{links[i]}, Load{links[(i + 1) % 24], 0.7},
                              Load{links[(i + 5) % 24], 1.0 / 3}};
    const FlowId flow = program.AddFlow(
        {.size = Bytes(1'000'003), .rate = Bandwidth(53'687'091'200), .loads = loads});
    program.AddTask(program.AddStream(rank, StreamKind::kData), {.flow = flow, .label = label});
  }
  const std::vector<Time> finishes = Finishes(program);
  EXPECT_THAT(finishes, ::testing::Each(finishes[0]));
}

TEST(FluidNetwork, HugeFlowsEndTheRunAndNotTheProgram) {
  const int64_t most = std::numeric_limits<int64_t>::max();
  for (const int64_t latency : {int64_t{0}, most}) {
    Program program;
    const RankClassId rank = program.AddRank({.members = {0}});
    const LabelId label = program.AddLabel({.name = "x"});
    const ResourceId link = program.AddResource({.capacity = Bandwidth(1)});
    const ResourceId wide = program.AddResource({.capacity = Bandwidth(most)});
    const std::array loads = {Load{link, 1e12}, Load{wide, 1e-9}};
    const FlowId flow = program.AddFlow({.size = Bytes(most),
                                         .rate = Bandwidth(most),
                                         .latency = Duration(latency),
                                         .loads = loads});
    for (int i = 0; i < 2; ++i) {
      program.AddTask(program.AddStream(rank, StreamKind::kData), {.flow = flow, .label = label});
    }
    ASSERT_TRUE(program.Verify().ok()) << program.Verify();
    FluidNetwork fluid(program);
    const absl::Status status = RunEvents(program, fluid).status();
    EXPECT_THAT(std::string(status.message()), HasSubstr("goes on beyond"));
    IndependentFlows independent(program);
    EXPECT_THAT(RunEvents(program, independent).status(), status);
  }
}

TEST(FluidNetworkDeathTest, TimeDoesNotRunBack) {
  const Program program;
  FluidNetwork network(program);
  network.Advance(Time(5));
  EXPECT_DEATH(network.Advance(Time(4)), "back to");
  EXPECT_DEATH(network.NextCompletion(Time(4)), "asked at");
}

}  // namespace
}  // namespace fluid_network_test_cc
}  // namespace orrery::simulator
