#include "transforms/schedules/orders.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <utility>

#include "transforms/schedules/testing/slots.h"
#include "transforms/schedules/text.h"

// What follows from orders, on pictures that a person can check by eye.

namespace orrery::transforms {
namespace orders_test_cc {
namespace {

using ::testing::ElementsAre;

constexpr StepKind kForward = StepKind::kForward;
constexpr StepKind kBackward = StepKind::kBackward;
constexpr StepKind kInput = StepKind::kInputGradient;
constexpr StepKind kWeight = StepKind::kWeightGradient;
constexpr StagePlacement kLoop = StagePlacement::kLoop;

RankOrders OrdersOf(absl::string_view name, const PipelineShape& shape) {
  return FindSchedule(name).value()->OrdersOf(shape);
}

std::vector<std::vector<int32_t>> Slots(const RankOrders& orders) {
  std::vector<std::vector<int32_t>> slots;
  for (const auto& order : orders) {
    slots.emplace_back();
    for (const ScheduleStep& step : order) slots.back().push_back(step.slot);
  }
  return slots;
}

TEST(AssignSlots, StartsEachStepWhenItsRankAndItsNeedAreDone) {
  RankOrders orders = {{{kForward, 0, 0}, {kBackward, 0, 0}},
                       {{kForward, 1, 0}, {kBackward, 1, 0}}};
  AssignSlots(orders, kLoop, {.ranks = 2});
  EXPECT_THAT(Slots(orders), ElementsAre(ElementsAre(0, 3), ElementsAre(1, 2)));
  EXPECT_EQ(UnitMakespan(orders), 4);
}

// Nobody waits for W, which waits for I.
TEST(AssignSlots, KnowsTheTwoPartsOfABackward) {
  RankOrders orders = {{{kForward, 0, 0}, {kInput, 0, 0}, {kWeight, 0, 0}},
                       {{kForward, 1, 0}, {kInput, 1, 0}, {kWeight, 1, 0}}};
  AssignSlots(orders, kLoop, {.ranks = 2});
  EXPECT_THAT(Slots(orders), ElementsAre(ElementsAre(0, 3, 4), ElementsAre(1, 2, 3)));
}

TEST(AssignSlots, GoesAroundChunks) {
  RankOrders orders = {{{kForward, 0, 0}, {kForward, 2, 0}, {kBackward, 2, 0}, {kBackward, 0, 0}},
                       {{kForward, 1, 0}, {kForward, 3, 0}, {kBackward, 3, 0}, {kBackward, 1, 0}}};
  AssignSlots(orders, kLoop, {.ranks = 2, .chunks = 2});
  EXPECT_THAT(Slots(orders), ElementsAre(ElementsAre(0, 2, 5, 7), ElementsAre(1, 3, 4, 6)));
}

// Stages 2 and 3 are the second direction's first and last.
TEST(AssignSlots, KnowsTheSecondDirection) {
  RankOrders orders = {{{kForward, 0, 0}, {kForward, 3, 1}, {kBackward, 3, 1}, {kBackward, 0, 0}},
                       {{kForward, 2, 1}, {kForward, 1, 0}, {kBackward, 1, 0}, {kBackward, 2, 1}}};
  AssignSlots(orders, StagePlacement::kTwoWay, {.ranks = 2, .microbatches = 2, .chunks = 2});
  EXPECT_THAT(Slots(orders), ElementsAre(ElementsAre(0, 1, 2, 3), ElementsAre(0, 1, 2, 3)));
}

TEST(AssignSlots, OverwritesWhatWasThere) {
  const PipelineShape shape = {.ranks = 3, .microbatches = 5};
  RankOrders orders = OrdersOf("distir", shape);
  const RankOrders before = orders;
  for (auto& order : orders) {
    for (ScheduleStep& step : order) step.slot = 99;
  }
  AssignSlots(orders, kLoop, shape);
  EXPECT_EQ(orders, before);
}

TEST(AssignSlots, EmptyOrdersTakeNoTime) {
  RankOrders orders(3);
  AssignSlots(orders, kLoop, {.ranks = 3});
  EXPECT_EQ(UnitMakespan(orders), 0);
  EXPECT_EQ(UnitMakespan({}), 0);
}

TEST(AssignSlotsDeathTest, ADeadlockNamesTheRanksThatWait) {
  RankOrders orders = {{{kForward, 0, 0}, {kBackward, 0, 0}, {kForward, 0, 1}, {kBackward, 0, 1}},
                       {{kForward, 1, 1}, {kForward, 1, 0}, {kBackward, 1, 0}, {kBackward, 1, 1}}};
  EXPECT_DEATH(AssignSlots(orders, kLoop, {.ranks = 2, .microbatches = 2}),
               "deadlock: rank 0 waits in 0B0 for 1B0; rank 1 waits in 1F1 for 0F1");
}

TEST(AssignSlotsDeathTest, WhatIsLackingIsNamed) {
  RankOrders orders = {{{kForward, 0, 0}, {kBackward, 0, 0}}, {{kForward, 1, 0}}};
  EXPECT_DEATH(AssignSlots(orders, kLoop, {.ranks = 2}), "deadlock: 1B0 never runs");
}

TEST(AssignSlotsDeathTest, StepsAreOfTheShape) {
  RankOrders orders = {{{kForward, 0, -1}}};
  EXPECT_DEATH(AssignSlots(orders, kLoop, {}), "0F-1");
  orders = {{{kForward, 1, 0}}};
  EXPECT_DEATH(AssignSlots(orders, kLoop, {}), "1F0");
  EXPECT_DEATH(AssignSlots(orders, kLoop, {.ranks = 2}), "1 ranks");
}

// rank 0 | 0F0-- .  .  .  .  .  .  .  0B0---
// rank 1 | .  .  .  1F0-- 1B0---
TEST(TimeOrders, SendsTakeTimeBetweenRanksAndNotOnThem) {
  const PipelineShape shape = {.ranks = 2};
  const Timing timing =
      TimeOrders(OrdersOf("1f1b", shape), kLoop, shape,
                 {.forward = 2, .input_gradient = 2, .weight_gradient = 1, .send = 1});
  EXPECT_EQ(timing.steps[0], (std::vector<StepTime>{{0, 2}, {9, 12}}));
  EXPECT_EQ(timing.steps[1], (std::vector<StepTime>{{3, 5}, {5, 8}}));
  EXPECT_EQ(timing.makespan, 12);
  EXPECT_THAT(timing.idle, ElementsAre(7, 7));
  EXPECT_THAT(timing.idle_inside, ElementsAre(7, 0));
  const PipelineShape v = {.ranks = 1, .chunks = 2};
  EXPECT_EQ(TimeOrders(OrdersOf("zbv", v), StagePlacement::kV, v, {.send = 100}).makespan, 6);
}

TEST(TimeOrders, RanksWithoutStepsAreIdle) {
  const Timing timing = TimeOrders({{}, {}}, kLoop, {.ranks = 2}, {});
  EXPECT_EQ(timing.makespan, 0);
  EXPECT_THAT(timing.idle, ElementsAre(0, 0));
}

TEST(PeakLive, CountsForwardsWithoutTheEndOfTheirBackward) {
  EXPECT_EQ(PeakLive({}), 0);
  std::vector<int64_t> peaks;
  for (const auto& order : OrdersOf("1f1b", {.ranks = 4, .microbatches = 3})) {
    peaks.push_back(PeakLive(order));
  }
  EXPECT_THAT(peaks, ElementsAre(3, 3, 2, 1));
  EXPECT_EQ(
      PeakLive(std::vector<ScheduleStep>{
          {kForward, 0, 0}, {kInput, 0, 0}, {kForward, 0, 1}, {kWeight, 0, 0}, {kForward, 0, 2}}),
      2);
}

// The forward of microbatch 2 comes before the first update; its backward makes the third.
TEST(Staleness, CountsUpdatesBetweenForwardAndUpdate) {
  const RankOrders orders = OrdersOf("1f1b", {.ranks = 3, .microbatches = 6});
  EXPECT_THAT(Staleness(orders, 3, 1), ElementsAre(2, 1, 0));
  EXPECT_THAT(Staleness(orders, 3, 3), ElementsAre(1, 1, 0));
  EXPECT_THAT(Staleness(orders, 3, 6), ElementsAre(0, 0, 0));
}

// The verifier's message when `change` has been done to 1F1B of two ranks and two microbatches:
//   rank 0 | 0F0 0F1 .   0B0 .   0B1
//   rank 1 | .   1F0 1B0 1F1 1B1 .
template <typename Change>
std::string MessageAfter(Change change) {
  const PipelineShape shape = {.ranks = 2, .microbatches = 2};
  RankOrders orders = OrdersOf("1f1b", shape);
  EXPECT_TRUE(VerifyOrders(orders, kLoop, shape).ok());
  change(orders);
  return std::string(VerifyOrders(orders, kLoop, shape).message());
}

TEST(VerifyOrders, NamesAMissingStep) {
  EXPECT_EQ(MessageAfter([](RankOrders& orders) { orders[1].pop_back(); }),
            "rank 1: 1B1 never runs");
  EXPECT_EQ(MessageAfter([](RankOrders& orders) { orders[1].erase(orders[1].begin()); }),
            "rank 1: 1F0 never runs");
  EXPECT_EQ(MessageAfter([](RankOrders& orders) { orders[1][3].kind = kInput; }),
            "rank 1: 1W1 never runs");
  EXPECT_EQ(MessageAfter([](RankOrders& orders) { orders[1][3].kind = kWeight; }),
            "rank 1: 1I1 never runs");
}

TEST(VerifyOrders, NamesARepeatedStep) {
  EXPECT_EQ(MessageAfter([](RankOrders& orders) {
              orders[0].push_back({kForward, 0, 1, 6});
            }),
            "rank 0: 0F1 runs twice");
  EXPECT_EQ(MessageAfter([](RankOrders& orders) {
              orders[0].push_back({kWeight, 0, 1, 6});
            }),
            "rank 0: 0W1 doubles what another step does: a backward runs as B, or as I and W");
}

TEST(VerifyOrders, NamesAStrangeMicrobatchOrStage) {
  EXPECT_EQ(MessageAfter([](RankOrders& orders) { orders[0][3].microbatch = 2; }),
            "rank 0: 0B2 is of none of the 2 microbatches");
  EXPECT_EQ(MessageAfter([](RankOrders& orders) { orders[0][0].microbatch = -1; }),
            "rank 0: 0F-1 is of none of the 2 microbatches");
  EXPECT_EQ(MessageAfter([](RankOrders& orders) { orders[0][0].stage = 2; }),
            "rank 0: 2F0 is of none of the 2 stages");
  EXPECT_EQ(MessageAfter([](RankOrders& orders) { orders[0][0].stage = 1; }),
            "rank 0: 1F0 is of a stage that rank 1 holds");
}

TEST(VerifyOrders, NamesAMicrobatchInTheWrongDirection) {
  const PipelineShape shape = {.ranks = 2, .microbatches = 2, .chunks = 2};
  RankOrders orders = OrdersOf("chimera", shape);
  for (auto& order : orders) {
    for (ScheduleStep& step : order) step.microbatch = 1 - step.microbatch;
  }
  EXPECT_EQ(VerifyOrders(orders, StagePlacement::kTwoWay, shape).message(),
            "rank 0: 0F1: microbatch 1 takes the pipeline in the other direction");
}

TEST(VerifyOrders, NamesSlotsThatDoNotAscend) {
  EXPECT_EQ(MessageAfter([](RankOrders& orders) { std::swap(orders[0][0], orders[0][1]); }),
            "rank 0: 0F0 is in slot 0, which is not after slot 1 of the step before");
  EXPECT_EQ(MessageAfter([](RankOrders& orders) { orders[1][0].slot = -1; }),
            "rank 1: 1F0 is in slot -1, which is not after slot -1 of the step before");
}

TEST(VerifyOrders, NamesRanksThatWaitForEachOther) {
  EXPECT_EQ(
      MessageAfter([](RankOrders& orders) { std::swap(orders[1][2].kind, orders[1][3].kind); }),
      "deadlock: rank 1 waits in 1B1 for 1F1");
  EXPECT_EQ(MessageAfter([](RankOrders& orders) {
              std::swap(orders[0][1], orders[0][2]);
              std::swap(orders[1][1], orders[1][2]);
            }),
            "deadlock: rank 0 waits in 0B0 for 1B0; rank 1 waits in 1F1 for 0F1");
}

TEST(VerifyOrders, NamesTheFirstPairOutOfOrder) {
  EXPECT_EQ(MessageAfter([](RankOrders& orders) { orders[1][0].slot = 0; }),
            "1F0 is in slot 0, but waits for 0F0 in slot 0");
  EXPECT_EQ(MessageAfter([](RankOrders& orders) { orders[0][2].slot = 2; }),
            "0B0 is in slot 2, but waits for 1B0 in slot 2");
}

TEST(VerifyOrders, NamesAWrongNumberOfRanks) {
  EXPECT_EQ(MessageAfter([](RankOrders& orders) { orders.pop_back(); }),
            "there are orders of 1 ranks; wanted 2");
  EXPECT_EQ(MessageAfter([](RankOrders&) {}), "");
}

TEST(VerifyOrders, TheLastStepRunsAtOnceWithNothing) {
  EXPECT_EQ(MessageAfter([](RankOrders& orders) { orders[0].back().with_next = true; }),
            "rank 0: 0B1 runs at once with a step after it, but is the last");
}

// For orders from elsewhere, before they have slots.
TEST(CheckOrders, LooksAtNoSlots) {
  const PipelineShape shape = {.ranks = 2, .microbatches = 2};
  RankOrders orders = OrdersOf("1f1b", shape);
  for (auto& order : orders) {
    for (ScheduleStep& step : order) step.slot = 0;
  }
  EXPECT_TRUE(CheckOrders(orders, kLoop, shape).ok());
  EXPECT_FALSE(VerifyOrders(orders, kLoop, shape).ok());
}

}  // namespace
}  // namespace orders_test_cc
}  // namespace orrery::transforms
