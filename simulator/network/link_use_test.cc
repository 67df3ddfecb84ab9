#include "simulator/network/link_use.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <random>
#include <vector>

#include "simulator/engine/event_queue.h"
#include "simulator/network/fluid_network.h"

namespace orrery::simulator {
namespace link_use_test_cc {
namespace {

Program TwoLinks() {
  Program program;
  program.AddResource({.name = "a", .capacity = Bandwidth(100)});
  program.AddResource({.name = "b", .capacity = Bandwidth(1000)});
  return program;
}

constexpr ResourceId kFirst(0);
constexpr ResourceId kSecond(1);

TEST(LinkUse, NothingUsedIsNothing) {
  const Program program = TwoLinks();
  LinkUse use(program);
  EXPECT_TRUE(use.intervals(kFirst).empty());
  EXPECT_EQ(use.Summarize(kFirst, Time(0)).utilization, 0);
}

TEST(LinkUse, IntervalsOfOneUseAreOne) {
  const Program program = TwoLinks();
  LinkUse use(program);
  use.Set(kFirst, Time(0), 0);
  use.Set(kFirst, Time(5), 40);
  use.Set(kFirst, Time(7), 40.000000000001);  // a rounding
  use.Set(kFirst, Time(8), 10);
  use.Set(kFirst, Time(8), 40);  // what held for no time
  use.Set(kFirst, Time(9), 100);
  use.Set(kFirst, Time(12), 0);
  ASSERT_EQ(use.intervals(kFirst).size(), 3u);
  EXPECT_EQ(use.intervals(kFirst)[0].from, Time(5));
  EXPECT_EQ(use.intervals(kFirst)[1].from, Time(9));
  EXPECT_EQ(use.intervals(kFirst)[2].bytes_per_second, 0);
  EXPECT_EQ(use.Summarize(kFirst, Time(20)).busy, Time(7));
  EXPECT_EQ(use.Summarize(kFirst, Time(20)).full, Time(3));
}

TEST(LinkUse, UtilizationIsWhatIsCarriedForItsWidth) {
  const Program program = TwoLinks();
  LinkUse use(program);
  const std::array one = {Load{kFirst}, Load{kSecond, 3}};
  use.AddBytes({.size = Bytes(50), .loads = one});
  EXPECT_EQ(use.Summarize(kSecond, Duration::FromSeconds(2)).bytes, 150);
  EXPECT_EQ(use.Summarize(kFirst, Duration::FromSeconds(2)).utilization, 0.25);
  EXPECT_EQ(use.Summarize(kSecond, Duration::FromSeconds(2)).utilization, 0.075);
  const std::array other = {Load{kSecond}};
  use.AddBytes({.size = Bytes(1000), .loads = other});
  EXPECT_EQ(use.Summarize(kSecond, Duration::FromSeconds(2)).bytes, 1150);
}

TEST(LinkUse, WhatCarriesNothingIsNotUsed) {
  const Program program = TwoLinks();
  LinkUse use(program);
  const std::array second = {Load{kSecond, 2}};
  use.AddBytes({.size = Bytes(1), .loads = second});
  EXPECT_EQ(use.Summarize(kFirst, Duration(1)).utilization, 0);
  EXPECT_EQ(use.Summarize(kSecond, Duration(1)).utilization, 2 / (1000 * 1e-12));
}

// A billionth of the larger is a rounding, whatever its size; half a byte a second is use.
TEST(LinkUse, UsesThatAreEqualButForRoundingAreOne) {
  const Program program = TwoLinks();
  LinkUse use(program);
  use.Set(kFirst, Time(2), 1e12);
  use.Set(kFirst, Time(3), 1e12 + 999);
  use.Set(kFirst, Time(5), 1e12 + 1001);
  use.Set(kFirst, Time(9), 0.5);
  ASSERT_EQ(use.intervals(kFirst).size(), 3u);
  EXPECT_EQ(use.intervals(kFirst)[1].from, Time(5));
  EXPECT_EQ(use.intervals(kFirst)[2].from, Time(9));
  EXPECT_EQ(use.Summarize(kFirst, Time(14)).busy, Duration(12));
  EXPECT_EQ(use.Summarize(kFirst, Time(14)).full, Duration(0));
}

// Without latency the last byte of a flow is its arrival, after which the network is not asked
// again before the next one starts, if ever.
TEST(LinkUse, ALinkIsFreeOnceTheLastFlowHasArrived) {
  for (const Duration latency : {Duration(0), Duration(5)}) {
    Program program = TwoLinks();
    const LabelId label = program.AddLabel({.name = "op"});
    const StreamId stream = program.AddStream(program.AddRank({.members = {0}}), StreamKind::kData);
    const std::array loads = {Load{kFirst}};
    const Time second = Duration::FromSeconds(1);
    const FlowId flow = program.AddFlow(
        {.size = Bytes(100), .rate = Bandwidth(100), .latency = latency, .loads = loads});
    for (int i = 0; i < 2; ++i) {
      program.AddTask(stream, {.flow = flow, .label = label});
      program.AddTask(stream, {.duration = second * 2, .label = label});
    }
    LinkUse use(program);
    FluidNetwork network(program, &use);
    const Trace trace = *RunEvents(program, network);
    EXPECT_EQ(trace.makespan, second * 6 + latency * 2);
    ASSERT_EQ(use.intervals(kFirst).size(), 4u);
    EXPECT_EQ(use.intervals(kFirst)[1].from, second);
    EXPECT_EQ(use.intervals(kFirst)[2].from, second * 3 + latency);
    EXPECT_EQ(use.intervals(kFirst)[3].from, second * 4 + latency);
    EXPECT_EQ(use.intervals(kFirst)[3].bytes_per_second, 0);
    EXPECT_EQ(use.Summarize(kFirst, trace.makespan).full, second * 2);
    EXPECT_EQ(use.Summarize(kFirst, trace.makespan).busy, second * 2);
  }
}

// What the intervals say was carried is what the flows were to carry; recording changes nothing.
TEST(LinkUse, BytesAreConserved) {
  for (uint32_t seed = 0; seed < 30; ++seed) {
    std::mt19937 random(seed);
    Program program;
    const RankClassId rank = program.AddRank({.members = {0}});
    const LabelId label = program.AddLabel({.name = "send"});
    for (int i = 0; i < 4; ++i) {
      program.AddResource({.capacity = Bandwidth(1'000'000'000 + random() % 9'000'000'000)});
    }
    for (int i = 0; i < 12; ++i) {
      const StreamId stream = program.AddStream(rank, StreamKind::kData);
      std::vector<Load> loads;
      for (int32_t link = 0; link < 4; ++link) {
        if (random() % 2 == 0) loads.push_back({ResourceId(link), random() % 3 == 0 ? 0.5 : 2.0});
      }
      const FlowId flow = program.AddFlow({.size = Bytes(1 + random() % 1'000'000),
                                           .rate = Bandwidth(3'000'000'000),
                                           .latency = Duration(random() % 1000),
                                           .loads = loads});
      program.AddTask(stream, {.duration = Duration(random() % 100'000'000), .label = label});
      program.AddTask(stream, {.flow = flow, .label = label});
    }
    LinkUse use(program);
    FluidNetwork recorded(program, &use);
    const Trace trace = *RunEvents(program, recorded);
    FluidNetwork plain(program);
    EXPECT_EQ(trace, *RunEvents(program, plain));
    for (int32_t i = 0; i < 4; ++i) {
      const std::span<const UseInterval> intervals = use.intervals(ResourceId(i));
      const ResourceUse figures = use.Summarize(ResourceId(i), trace.makespan);
      const Bandwidth capacity = program.resource(ResourceId(i)).capacity;
      double carried = 0;
      for (size_t k = 0; k + 1 < intervals.size(); ++k) {
        EXPECT_LE(intervals[k].bytes_per_second,
                  static_cast<double>(capacity.bytes_per_second()) * (1 + 1e-12));
        carried +=
            intervals[k].bytes_per_second * (intervals[k + 1].from - intervals[k].from).seconds();
      }
      EXPECT_NEAR(carried, figures.bytes, 0.2 + figures.bytes * 1e-9);  // ends are rounded up
      EXPECT_TRUE(intervals.empty() || intervals.back().bytes_per_second == 0);
      EXPECT_LE(figures.full, figures.busy);
      EXPECT_LE(figures.utilization, 1);
    }
  }
}

}  // namespace
}  // namespace link_use_test_cc
}  // namespace orrery::simulator
