#include "transforms/schedules/schedule.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <utility>

// The functions around the orders, on pictures that a person can check by eye.

namespace orrery::transforms {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr StepKind kForward = StepKind::kForward;
constexpr StepKind kBackward = StepKind::kBackward;

StageOrders OrdersOf(absl::string_view name, const PipelineShape& shape) {
  const auto schedule = FindSchedule(name);
  EXPECT_TRUE(schedule.ok()) << schedule.status();
  return (*schedule)->orders(shape);
}

TEST(FindSchedule, KnowsEveryNameOfTheList) {
  std::vector<absl::string_view> names;
  for (const PipelineSchedule* schedule : AllSchedules()) {
    names.push_back(schedule->name);
    ASSERT_TRUE(FindSchedule(schedule->name).ok());
    EXPECT_EQ(*FindSchedule(schedule->name), schedule);
  }
  EXPECT_THAT(names, testing::IsSupersetOf({"gpipe", "1f1b", "pipedream", "distir"}));
}

TEST(FindSchedule, ErrorListsTheNames) {
  const absl::Status status = FindSchedule("1F1B").status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(status.message()),
              testing::StartsWith("schedule '1F1B' is unknown; wanted one of gpipe, 1f1b, "
                                  "pipedream, distir"));
}

TEST(FindSchedule, OnlyPipedreamIsAsynchronousAndStashesWeights) {
  const PipelineShape shape = {.stages = 4, .microbatches = 8};
  std::vector<int32_t> versions;
  for (int32_t stage = 0; stage < 4; ++stage) {
    versions.push_back((*FindSchedule("pipedream"))->weight_versions(shape, stage));
  }
  EXPECT_THAT(versions, ElementsAre(4, 3, 2, 1));
  EXPECT_TRUE((*FindSchedule("pipedream"))->asynchronous);
  for (const char* name : {"gpipe", "1f1b", "distir"}) {
    EXPECT_FALSE((*FindSchedule(name))->asynchronous) << name;
    EXPECT_EQ((*FindSchedule(name))->weight_versions(shape, 0), 1) << name;
  }
}

TEST(Timeline, Gpipe) {
  EXPECT_EQ(DrawTimeline(OrdersOf("gpipe", {.stages = 3, .microbatches = 3})),
            "stage 0 | F0 F1 F2 .  .  .  .  B0 B1 B2\n"
            "stage 1 | .  F0 F1 F2 .  .  B0 B1 B2 .\n"
            "stage 2 | .  .  F0 F1 F2 B0 B1 B2 .  .\n");
}

TEST(Timeline, OneForwardOneBackward) {
  EXPECT_EQ(DrawTimeline(OrdersOf("1f1b", {.stages = 2, .microbatches = 3})),
            "stage 0 | F0 F1 .  B0 F2 B1 .  B2\n"
            "stage 1 | .  F0 B0 F1 B1 F2 B2 .\n");
}

TEST(Timeline, DistirRunsAheadOfOneForwardOneBackward) {
  const PipelineShape shape = {.stages = 3, .microbatches = 4};
  EXPECT_EQ(DrawTimeline(OrdersOf("distir", shape)),
            "stage 0 | F0 F1 F2 F3 .  B0 .  B1 .  B2 .  B3\n"
            "stage 1 | .  F0 F1 F2 B0 F3 B1 .  B2 .  B3 .\n"
            "stage 2 | .  .  F0 B0 F1 B1 F2 B2 F3 B3 .  .\n");
  EXPECT_EQ(DrawTimeline(OrdersOf("1f1b", shape)),
            "stage 0 | F0 F1 F2 .  .  B0 F3 B1 .  B2 .  B3\n"
            "stage 1 | .  F0 F1 .  B0 F2 B1 F3 B2 .  B3 .\n"
            "stage 2 | .  .  F0 B0 F1 B1 F2 B2 F3 B3 .  .\n");
}

TEST(Timeline, ColumnsStayInLineWhenNumbersGrow) {
  StageOrders orders(11);
  orders[0] = {{kForward, 0, 0}, {kForward, 10, 1}, {kBackward, 0, 3}};
  const std::string text = DrawTimeline(orders);
  EXPECT_THAT(text, testing::StartsWith("stage 0  | F0  F10 .   B0\n"
                                        "stage 1  | .   .   .   .\n"));
  EXPECT_THAT(text, testing::EndsWith("stage 10 | .   .   .   .\n"));
}

TEST(PrintOrders, IsTorchsTextForm) {
  EXPECT_EQ(PrintOrders(OrdersOf("1f1b", {.stages = 2, .microbatches = 2})),
            "0F0,0F1,0B0,0B1\n"
            "1F0,1B0,1F1,1B1\n");
}

TEST(AssignSlots, StartsEachStepWhenItsStageAndItsNeedAreDone) {
  StageOrders orders = {{{kForward, 0}, {kBackward, 0}}, {{kForward, 0}, {kBackward, 0}}};
  AssignSlots(orders);
  EXPECT_EQ(DrawTimeline(orders),
            "stage 0 | F0 .  .  B0\n"
            "stage 1 | .  F0 B0 .\n");
  EXPECT_EQ(UnitMakespan(orders), 4);
}

TEST(AssignSlots, OverwritesWhatWasThere) {
  StageOrders orders = OrdersOf("distir", {.stages = 3, .microbatches = 5});
  const StageOrders before = orders;
  for (auto& order : orders) {
    for (ScheduleStep& step : order) step.slot = 99;
  }
  AssignSlots(orders);
  EXPECT_EQ(orders, before);
}

TEST(AssignSlots, EmptyOrdersTakeNoTime) {
  StageOrders orders(3);
  AssignSlots(orders);
  EXPECT_EQ(UnitMakespan(orders), 0);
  EXPECT_EQ(UnitMakespan({}), 0);
}

TEST(AssignSlotsDeathTest, ADeadlockNamesBothEnds) {
  StageOrders orders = {{{kForward, 0}, {kBackward, 0}, {kForward, 1}, {kBackward, 1}},
                        {{kForward, 1}, {kForward, 0}, {kBackward, 0}, {kBackward, 1}}};
  EXPECT_DEATH(AssignSlots(orders),
               "deadlock: B0 of stage 0 waits for B0 of stage 1; "
               "F1 of stage 1 waits for F1 of stage 0");
}

TEST(AssignSlotsDeathTest, AMicrobatchIsCountedFromZero) {
  StageOrders orders = {{{kForward, -1}}};
  EXPECT_DEATH(AssignSlots(orders), "F-1");
}

TEST(PeakLive, CountsForwardsWithoutTheirBackward) {
  EXPECT_EQ(PeakLiveMicrobatches({}), 0);
  std::vector<int32_t> peaks;
  for (const auto& order : OrdersOf("1f1b", {.stages = 4, .microbatches = 3})) {
    peaks.push_back(PeakLiveMicrobatches(order));
  }
  EXPECT_THAT(peaks, ElementsAre(3, 3, 2, 1));
}

// The verifier's message when `change` has been done to 1F1B of two stages and two microbatches:
//   stage 0 | F0 F1 .  B0 .  B1
//   stage 1 | .  F0 B0 F1 B1 .
template <typename Change>
std::string MessageAfter(Change change) {
  const PipelineShape shape = {.stages = 2, .microbatches = 2};
  StageOrders orders = OrdersOf("1f1b", shape);
  EXPECT_TRUE(VerifyOrders(orders, shape).ok());
  change(orders);
  return std::string(VerifyOrders(orders, shape).message());
}

TEST(VerifyOrders, NamesAMissingStep) {
  EXPECT_EQ(MessageAfter([](StageOrders& orders) { orders[1].pop_back(); }),
            "stage 1: B1 never runs");
}

TEST(VerifyOrders, NamesARepeatedStep) {
  EXPECT_EQ(MessageAfter([](StageOrders& orders) {
              orders[0].push_back({kForward, 1, 6});
            }),
            "stage 0: F1 runs twice");
}

TEST(VerifyOrders, NamesAStrangeMicrobatch) {
  EXPECT_EQ(MessageAfter([](StageOrders& orders) { orders[0][3].microbatch = 2; }),
            "stage 0: B2 is none of the 2 microbatches");
  EXPECT_EQ(MessageAfter([](StageOrders& orders) { orders[0][0].microbatch = -1; }),
            "stage 0: F-1 is none of the 2 microbatches");
}

TEST(VerifyOrders, NamesSlotsThatDoNotAscend) {
  EXPECT_EQ(MessageAfter([](StageOrders& orders) { std::swap(orders[0][0], orders[0][1]); }),
            "stage 0: F0 is in slot 0, which is not after slot 1 of the step before");
  EXPECT_EQ(MessageAfter([](StageOrders& orders) { orders[1][0].slot = -1; }),
            "stage 1: F0 is in slot -1, which is not after slot -1 of the step before");
}

TEST(VerifyOrders, NamesABackwardBeforeItsForward) {
  const auto swap = [](StageOrders& orders) { std::swap(orders[1][2].kind, orders[1][3].kind); };
  EXPECT_EQ(MessageAfter(swap),
            "B1 of stage 1 is in slot 3, but waits for F1 of stage 1 in slot 4");
}

TEST(VerifyOrders, NamesTheFirstPairOutOfOrder) {
  EXPECT_EQ(MessageAfter([](StageOrders& orders) { orders[1][0].slot = 0; }),
            "F0 of stage 1 is in slot 0, but waits for F0 of stage 0 in slot 0");
  EXPECT_EQ(MessageAfter([](StageOrders& orders) { orders[0][2].slot = 2; }),
            "B0 of stage 0 is in slot 2, but waits for B0 of stage 1 in slot 2");
}

TEST(VerifyOrders, NamesAWrongNumberOfStages) {
  EXPECT_EQ(MessageAfter([](StageOrders& orders) { orders.pop_back(); }),
            "there are orders of 1 stages; wanted 2");
  EXPECT_THAT(MessageAfter([](StageOrders&) {}), IsEmpty());
}

}  // namespace
}  // namespace orrery::transforms
