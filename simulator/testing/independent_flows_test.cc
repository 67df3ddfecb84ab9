#include "simulator/testing/independent_flows.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>
#include <vector>

namespace orrery::simulator {
namespace independent_flows_test_cc {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

// A byte a picosecond.
Flow Message(int64_t bytes, int64_t latency) {
  return {.size = Bytes(bytes), .rate = Bandwidth(1'000'000'000'000), .latency = Duration(latency)};
}

TEST(TimeAlone, IsLatencyAndTransferRoundedUp) {
  EXPECT_EQ(TimeAlone(Message(100, 7)), Duration(107));
  EXPECT_EQ(TimeAlone(Message(0, 7)), Duration(7));
  EXPECT_EQ(TimeAlone({.size = Bytes(1), .rate = Bandwidth(3), .latency = Duration(1)}),
            Duration(333'333'333'335));  // 1 byte at 3 byte/s: a third of a second, rounded up
}

TEST(IndependentFlows, AnIdleNetworkHasNoArrival) {
  IndependentFlows network;
  EXPECT_EQ(network.NextCompletion(Time(0)), std::nullopt);
  EXPECT_THAT(network.Advance(Time(5)), IsEmpty());
  EXPECT_EQ(network.NextCompletion(Time(5)), std::nullopt);
}

TEST(IndependentFlows, MessagesDoNotSeeEachOther) {
  IndependentFlows network;
  network.Start(TaskId(0), Message(10, 0));
  network.Advance(Time(4));
  network.Start(TaskId(1), Message(2, 1));
  EXPECT_EQ(network.NextCompletion(Time(4)), Time(7));
  EXPECT_THAT(network.Advance(Time(7)), ElementsAre(TaskId(1)));
  EXPECT_EQ(network.NextCompletion(Time(7)), Time(10));
  EXPECT_THAT(network.Advance(Time(10)), ElementsAre(TaskId(0)));
  EXPECT_EQ(network.NextCompletion(Time(10)), std::nullopt);
}

TEST(IndependentFlows, ArrivalsOfOneMomentKeepTheOrderOfTheStarts) {
  IndependentFlows network;
  for (const int32_t task : {5, 3, 8, 1}) network.Start(TaskId(task), Message(10, 0));
  EXPECT_THAT(network.Advance(Time(10)), ElementsAre(TaskId(5), TaskId(3), TaskId(8), TaskId(1)));
}

TEST(IndependentFlows, AMessageOfNoSizeArrivesAtOnce) {
  IndependentFlows network;
  network.Advance(Time(3));
  network.Start(TaskId(0), Message(0, 0));
  EXPECT_EQ(network.NextCompletion(Time(3)), Time(3));
  EXPECT_THAT(network.Advance(Time(3)), ElementsAre(TaskId(0)));
}

TEST(IndependentFlows, EachMessageArrivesOnceAndOnTime) {
  std::mt19937 random(1);
  IndependentFlows network;
  std::vector<Time> due;
  Time now;
  size_t arrived = 0;
  while (arrived < 500) {
    if (due.size() < 500 && random() % 2 == 0) {
      const Flow flow = Message(random() % 100, random() % 10);
      network.Start(TaskId(static_cast<int32_t>(due.size())), flow);
      due.push_back(now + TimeAlone(flow));
    } else if (const std::optional<Time> next = network.NextCompletion(now)) {
      now = *next;
      for (const TaskId task : network.Advance(now)) {
        EXPECT_EQ(due[static_cast<size_t>(task.index())], now);
        ++arrived;
      }
    }
  }
  EXPECT_EQ(due.size(), 500u);
}

TEST(IndependentFlowsDeathTest, TimeDoesNotRunBack) {
  IndependentFlows network;
  network.Advance(Time(5));
  EXPECT_DEATH(network.Advance(Time(4)), "back to");
  EXPECT_DEATH(network.NextCompletion(Time(4)), "asked at");
}

}  // namespace
}  // namespace independent_flows_test_cc
}  // namespace orrery::simulator
