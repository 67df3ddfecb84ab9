#include "simulator/network/astra_networks.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "simulator/engine/event_queue.h"
#include "simulator/program/program_text.h"
#include "simulator/program/time_alone.h"

namespace orrery::simulator {
namespace astra_networks_test_cc {
namespace {

using ::testing::ElementsAre;

constexpr Bandwidth kFifty(50LL << 30);  // what ASTRA-sim calls 50 GB/s: 53.687 bytes/ns
constexpr Duration kHop(500'000);

Time Nanoseconds(int64_t count) { return Time(count * 1000); }

// A switch with four ports of 53.687 bytes/ns and 500 ns each way; a message takes two of them.
struct Switch {
  Program program;
  std::vector<ResourceId> up;
  std::vector<ResourceId> down;
  LabelId label = program.AddLabel({.name = "send"});
  RankClassId rank = program.AddRank({.members = {0}});

  Switch() {
    for (int i = 0; i < 4; ++i) {
      up.push_back(program.AddResource({.capacity = kFifty, .latency = kHop}));
      down.push_back(program.AddResource({.capacity = kFifty, .latency = kHop}));
    }
  }
  FlowId Message(size_t from, size_t to, int64_t bytes) {
    const std::vector<Load> loads = {{up[from]}, {down[to]}};
    return program.AddFlow(
        {.size = Bytes(bytes), .rate = kFifty, .latency = kHop * 2, .loads = loads});
  }
  // On a stream of its own, after `delay`.
  void Send(size_t from, size_t to, int64_t bytes, Duration delay = {}) {
    const StreamId stream = program.AddStream(rank, StreamKind::kSendNext);
    program.AddTask(stream, {.duration = delay, .label = label});
    program.AddTask(stream, {.flow = Message(from, to, bytes), .label = label});
  }
  // When the messages arrive.
  template <typename Network>
  std::vector<Time> Arrivals() const {
    Network network(program);
    const absl::StatusOr<Trace> trace = RunEvents(program, network);
    EXPECT_TRUE(trace.ok()) << trace.status();
    std::vector<Time> arrivals;
    for (size_t i = 1; i < trace->finish.size(); i += 2) arrivals.push_back(trace->finish[i]);
    return arrivals;
  }
};

// 1 MiB / 53.687 bytes/ns is 19531.25 ns: floor(2 x 500 + 19531.25), and twice floor(500 +
// 19531.25).
TEST(AstraNetworks, AMessageAlone) {
  Switch star;
  star.Send(0, 1, 1 << 20);
  EXPECT_THAT(star.Arrivals<AstraUnaware>(), ElementsAre(Nanoseconds(20'531)));
  EXPECT_THAT(star.Arrivals<AstraAware>(), ElementsAre(Nanoseconds(40'062)));
}

TEST(AstraNetworks, UnawareMessagesDoNotSeeEachOther) {
  Switch star;
  for (int i = 0; i < 3; ++i) star.Send(0, 1, 1 << 20);
  EXPECT_THAT(star.Arrivals<AstraUnaware>(),
              ElementsAre(Nanoseconds(20'531), Nanoseconds(20'531), Nanoseconds(20'531)));
}

TEST(AstraNetworks, AwareMessagesQueue) {
  Switch star;
  for (int i = 0; i < 3; ++i) star.Send(0, 1, 1 << 20);
  // The first link is free every floor(19531.25) ns, and the second when the message is there.
  EXPECT_THAT(star.Arrivals<AstraAware>(),
              ElementsAre(Nanoseconds(40'062), Nanoseconds(59'593), Nanoseconds(79'124)));
}

TEST(AstraNetworks, AwareServesFirstWhoComesFirst) {
  Switch star;
  star.Send(0, 1, 1 << 20);
  star.Send(2, 1, 1 << 20, Nanoseconds(100));  // waits for the switch to send the first to 1
  star.Send(3, 2, 1 << 20, Nanoseconds(5));    // takes links of its own
  EXPECT_THAT(star.Arrivals<AstraAware>(),
              ElementsAre(Nanoseconds(40'062), Nanoseconds(59'593), Nanoseconds(40'067)));
}

TEST(AstraNetworks, AShortMessageDoesNotOvertakeOnALink) {
  Switch star;
  star.Send(0, 1, 1 << 20);
  star.Send(0, 2, 1, Nanoseconds(1));
  // On its way at 19531, when the link is free, over two hops of floor(500 + 0.02) ns.
  EXPECT_THAT(star.Arrivals<AstraAware>(), ElementsAre(Nanoseconds(40'062), Nanoseconds(20'531)));
}

// One message is at the switch in the moment in which another is where it goes.
TEST(AstraNetworks, AwareAdvancesPastAllOfAMoment) {
  Switch star;
  const FlowId two_links = star.Message(0, 1, 1 << 20);
  const std::vector<Load> load = {{star.up[2]}};
  const FlowId one_link = star.program.AddFlow(
      {.size = Bytes(1 << 20), .rate = kFifty, .latency = kHop, .loads = load});
  AstraAware network(star.program);
  network.Start(TaskId(0), star.program.flow(two_links));
  network.Start(TaskId(1), star.program.flow(one_link));
  EXPECT_EQ(network.NextCompletion(Time()), Nanoseconds(20'031));
  EXPECT_THAT(network.Advance(Nanoseconds(20'031)), ElementsAre(TaskId(1)));
  EXPECT_EQ(network.NextCompletion(Nanoseconds(20'031)), Nanoseconds(40'062));
  EXPECT_THAT(network.Advance(Nanoseconds(40'062)), ElementsAre(TaskId(0)));
}

// Row "Ring 4, 1 MiB, 4 chunks, 1 active" of golden/collectives_astrasim.json, without its end
// points: 6 steps a chunk of 65,536 bytes, each floor(500 + 1220.7) ns, one after the other.
TEST(AstraNetworks, ARingTakesItsSteps) {
  for (const bool aware : {false, true}) {
    Program program;
    const RankClassId rank = program.AddRank({.members = {0}});
    const LabelId label = program.AddLabel({.name = "ring"});
    std::vector<StreamId> streams;
    std::vector<FlowId> flows;
    for (int i = 0; i < 4; ++i) {
      const std::vector<Load> loads = {
          {program.AddResource({.capacity = kFifty, .latency = kHop})}};
      flows.push_back(program.AddFlow(
          {.size = Bytes(65'536), .rate = kFifty, .latency = kHop, .loads = loads}));
      streams.push_back(program.AddStream(rank, StreamKind::kData));
    }
    for (int step = 0; step < 4 * 6; ++step) {
      for (size_t i = 0; i < 4; ++i) {
        program.AddTask(streams[i], {.flow = flows[i], .label = label});
      }
    }
    AstraUnaware unaware_network(program);
    AstraAware aware_network(program);
    NetworkModel& network = aware ? static_cast<NetworkModel&>(aware_network) : unaware_network;
    EXPECT_EQ(RunEvents(program, network)->makespan, Nanoseconds(24 * 1720));
  }
}

TEST(AstraNetworks, AMessageWithoutARouteTakesItsOwnRate) {
  Program program;
  const RankClassId rank = program.AddRank({.members = {0}});
  const LabelId label = program.AddLabel({.name = "send"});
  const FlowId flow =
      program.AddFlow({.size = Bytes(1 << 20), .rate = kFifty, .latency = Duration(1'900)});
  program.AddTask(program.AddStream(rank, StreamKind::kData), {.flow = flow, .label = label});
  AstraUnaware unaware(program);
  EXPECT_EQ(RunEvents(program, unaware)->makespan, Nanoseconds(19'533));
  AstraAware aware(program);
  EXPECT_EQ(RunEvents(program, aware)->makespan, Nanoseconds(19'533));
}

// Two crossings of the first link take twice 19531.25 ns there.
TEST(AstraNetworks, ALoadStretchesTheTimeOnItsLink) {
  Switch star;
  const std::vector<Load> loads = {{star.up[0], 2}, {star.down[1], 0.5}};
  const FlowId flow = star.program.AddFlow(
      {.size = Bytes(1 << 20), .rate = kFifty, .latency = kHop * 2, .loads = loads});
  for (int i = 0; i < 2; ++i) {
    const StreamId stream = star.program.AddStream(star.rank, StreamKind::kSendNext);
    star.program.AddTask(stream, {.label = star.label});
    star.program.AddTask(stream, {.flow = flow, .label = star.label});
  }
  // floor(1000 + 39062.5); floor(500 + 39062.5) and floor(500 + 9765.625), the second
  // floor(39062.5) later.
  EXPECT_THAT(star.Arrivals<AstraUnaware>(), ElementsAre(Nanoseconds(40'062), Nanoseconds(40'062)));
  EXPECT_THAT(star.Arrivals<AstraAware>(), ElementsAre(Nanoseconds(49'827), Nanoseconds(88'889)));
}

TEST(AstraNetworks, AreNoFasterThanTheRateOfTheFlow) {
  Switch star;
  const std::vector<Load> loads = {{star.up[0]}};
  const FlowId flow = star.program.AddFlow(
      {.size = Bytes(1000), .rate = Bandwidth(1'000'000'000), .latency = kHop, .loads = loads});
  star.program.AddTask(star.program.AddStream(star.rank, StreamKind::kData),
                       {.flow = flow, .label = star.label});
  AstraUnaware unaware(star.program);
  EXPECT_EQ(RunEvents(star.program, unaware)->makespan, Nanoseconds(1500));
}

// Whoever plays them says then that the step is too long.
TEST(AstraNetworks, EndAtTheEndOfTime) {
  Program program;
  const Flow flow{.size = Bytes(1 << 30), .rate = Bandwidth(1)};
  AstraUnaware unaware(program);
  unaware.Start(TaskId(0), flow);
  EXPECT_EQ(unaware.NextCompletion(Time(0)), kEndOfTime);
  EXPECT_THAT(unaware.Advance(kEndOfTime), ElementsAre(TaskId(0)));
  unaware.Start(TaskId(1), flow);
  EXPECT_EQ(unaware.NextCompletion(kEndOfTime), kEndOfTime);
  AstraAware aware(program);
  aware.Start(TaskId(0), flow);
  EXPECT_EQ(aware.NextCompletion(Time(0)), kEndOfTime);
}

}  // namespace
}  // namespace astra_networks_test_cc
}  // namespace orrery::simulator
