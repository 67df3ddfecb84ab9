#include "transforms/schedules/list_scheduler.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "transforms/schedules/orders.h"
#include "transforms/schedules/text.h"

namespace orrery::transforms {
namespace list_scheduler_test_cc {
namespace {

class Draws {
 public:
  int64_t operator()(int64_t low, int64_t high) {
    return std::uniform_int_distribution<int64_t>(low, high)(random_);
  }
  bool Coin() { return (*this)(0, 1) == 1; }

 private:
  std::mt19937 random_{11};
};

// Against the first of the smallest.
TEST(EarliestRank, IsTheFirstOfTheEarliest) {
  Draws draw;
  for (size_t ranks = 1; ranks <= 20; ++ranks) {
    EarliestRank earliest(ranks);
    std::vector<int64_t> times(ranks, EarliestRank::kNever);
    for (int i = 0; i < 200; ++i) {
      const auto rank = static_cast<size_t>(draw(0, static_cast<int64_t>(ranks) - 1));
      times[rank] = draw(0, 9) == 0 ? EarliestRank::kNever : draw(0, 5);
      earliest.Set(rank, times[rank]);
      const auto smallest = std::min_element(times.begin(), times.end());
      ASSERT_EQ(earliest.Earliest(), static_cast<size_t>(smallest - times.begin()));
      ASSERT_EQ(earliest[rank], times[rank]);
    }
  }
}

RankOrders OrdersOf(const ListScheduler& scheduler, size_t ranks) {
  RankOrders orders(ranks);
  for (const PlayedStep& step : scheduler.steps()) {
    orders[step.rank].push_back({.kind = step.kind,
                                 .stage = static_cast<int32_t>(step.stage),
                                 .microbatch = static_cast<int32_t>(step.microbatch)});
  }
  return orders;
}

std::string Text(const BlockPipeline& pipeline, const std::vector<int32_t>& gaps,
                 const ListRules& rules) {
  ListScheduler scheduler(pipeline);
  const BuildingBlock block = PlaceBlock(pipeline, gaps, pipeline.ShortestInterval());
  if (!scheduler.Play(block, rules)) return "too much is live";
  return PrintOrders(OrdersOf(scheduler, pipeline.ranks));
}

// Forwards as many as may be live, then backwards first; gradients of weights where nothing else
// can run, or where memory has to be freed.
TEST(ListScheduler, FillsWithWeightGradientsWhatIsLeft) {
  EXPECT_EQ(Text({.ranks = 2, .microbatches = 4, .live_limits = {2, 2}}, {1, 1, 2}, {}),
            "0F0,0F1,0I0,0W0,0F2,0I1,0W1,0F3,0I2,0W2,0I3,0W3\n"
            "1F0,1I0,1F1,1I1,1W0,1F2,1I2,1W1,1F3,1I3,1W2,1W3\n");
}

TEST(ListScheduler, WithMoreMemoryForwardsComeEarlierAndNobodyWaits) {
  EXPECT_EQ(Text({.ranks = 2, .microbatches = 4, .live_limits = {4, 4}}, {1, 1, 2}, {}),
            "0F0,0F1,0F2,0I0,0F3,0I1,0W0,0I2,0W1,0I3,0W2,0W3\n"
            "1F0,1I0,1F1,1I1,1F2,1I2,1F3,1I3,1W0,1W1,1W2,1W3\n");
}

TEST(ListScheduler, ForwardsThatKeepTheirTurnRunAs1f1b) {
  EXPECT_EQ(
      Text({.ranks = 3, .microbatches = 3, .splits_backward = false, .live_limits = {3, 3, 3}},
           {1, 1, 1, 2, 2}, {.keeps_backwards = true, .keeps_forwards = true}),
      "0F0,0F1,0F2,0B0,0B1,0B2\n"
      "1F0,1F1,1B0,1F2,1B1,1B2\n"
      "2F0,2B0,2F1,2B1,2F2,2B2\n");
}

TEST(ListScheduler, RefusesABlockOfWhichTooMuchIsLive) {
  const BlockPipeline tight = {.ranks = 3, .microbatches = 9, .live_limits = {2, 2, 2}};
  EXPECT_EQ(Text(tight, {1, 1, 1, 2, 2}, {}), "too much is live");
  BlockPipeline few = tight;
  few.microbatches = 2;
  EXPECT_NE(Text(few, {1, 1, 1, 2, 2}, {}), "too much is live");
}

// At 30 rank 0 could run F3. It knows by then that I0, which is before it in the block, comes
// at 32.
TEST(ListScheduler, WaitsForWhatComesBeforeTheStepAtHandWouldEnd) {
  const BlockPipeline pipeline = {.ranks = 2, .microbatches = 4, .live_limits = {4, 4}};
  ListRules rules = {.durations = {.forward = 10, .input_gradient = 12, .weight_gradient = 8}};
  const auto first_line = [&] {
    const std::string text = Text(pipeline, {1, 1, 1}, rules);
    return text.substr(0, text.find('\n'));
  };
  EXPECT_EQ(first_line(), "0F0,0F1,0F2,0F3,0I0,0I1,0W0,0I2,0W1,0I3,0W2,0W3");
  rules.waits = true;
  EXPECT_EQ(first_line(), "0F0,0F1,0F2,0I0,0F3,0I1,0W0,0I2,0W1,0I3,0W2,0W3");
}

// Three of six are room for what comes up the V to the last rank, else five forwards run down.
TEST(ListScheduler, SparesRoomForForwardsOfChunk1) {
  const BlockPipeline pipeline = {.ranks = 4,
                                  .microbatches = 8,
                                  .chunks = 2,
                                  .splits_backward = false,
                                  .live_limits = {6, 6, 6, 6}};
  std::vector<int32_t> gaps(15, 1);
  std::fill(gaps.begin() + 8, gaps.end(), 2);
  ListRules rules = {.keeps_backwards = true};
  const auto forwards_first = [&] {
    const ParsedOrders parsed = ParseOrders(Text(pipeline, gaps, rules)).value();
    std::vector<int64_t> counts;
    for (const auto& order : parsed.orders) {
      const auto backward = std::find_if(order.begin(), order.end(), [](const ScheduleStep& step) {
        return step.kind == StepKind::kBackward;
      });
      counts.push_back(std::count_if(order.begin(), backward,
                                     [&](const ScheduleStep& step) { return step.stage < 4; }));
    }
    return counts;
  };
  EXPECT_THAT(forwards_first(), testing::ElementsAre(5, 5, 4, 3));
  rules.spares_room = true;
  EXPECT_THAT(forwards_first(), testing::ElementsAre(5, 4, 3, 3));
}

struct Case {
  BlockPipeline pipeline;
  std::vector<int32_t> gaps;
  int32_t interval = 1;
  ListRules rules;
};

Case RandomCase(Draws& draw) {
  Case random;
  BlockPipeline& pipeline = random.pipeline;
  pipeline = {.ranks = static_cast<size_t>(draw(1, 8)),
              .microbatches = static_cast<size_t>(draw(1, 14)),
              .chunks = static_cast<size_t>(draw(1, 2)),
              .splits_backward = draw.Coin()};
  for (size_t rank = 0; rank < pipeline.ranks; ++rank) {
    pipeline.live_limits.push_back(draw(2, 2 * static_cast<int64_t>(pipeline.ranks) + 2));
  }
  for (size_t i = 0; i + 1 < 2 * pipeline.stages(); ++i) {
    random.gaps.push_back(static_cast<int32_t>(draw(1, 3)));
  }
  random.interval = pipeline.ShortestInterval() + static_cast<int32_t>(draw(0, 12));
  random.rules = {.durations = {.forward = draw(0, 9),
                                .input_gradient = draw(0, 9),
                                .weight_gradient = draw(0, 9),
                                .send = draw(0, 5)},
                  .keeps_backwards = draw.Coin(),
                  .keeps_forwards = draw.Coin(),
                  .spares_room = draw.Coin(),
                  .waits = draw.Coin()};
  return random;
}

// Steps in the order in which they were played, each when its rank and what it waits for are done.
int64_t MakespanOfSteps(const ListScheduler& scheduler, const Case& played) {
  const BlockPipeline& pipeline = played.pipeline;
  const PipelineShape shape = {.ranks = static_cast<int32_t>(pipeline.ranks),
                               .microbatches = static_cast<int32_t>(pipeline.microbatches),
                               .chunks = static_cast<int32_t>(pipeline.chunks)};
  const StagePlacement placement =
      pipeline.chunks == 2 ? StagePlacement::kV : StagePlacement::kLoop;
  const RankOrders orders = OrdersOf(scheduler, pipeline.ranks);
  const absl::Status status = CheckOrders(orders, placement, shape);
  EXPECT_TRUE(status.ok()) << status;
  for (size_t rank = 0; rank < pipeline.ranks; ++rank) {
    EXPECT_LE(PeakLive(orders[rank]), pipeline.live_limits[rank]) << rank;
  }
  return status.ok() ? TimeOrders(orders, placement, shape, played.rules.durations).makespan : 0;
}

TEST(ListScheduler, WhatItPlaysIsCompleteAndWithinLimitsAndNeverDeadlocks) {
  Draws draw;
  int played = 0;
  for (int i = 0; i < 1500; ++i) {
    const Case random = RandomCase(draw);
    const BlockPipeline& pipeline = random.pipeline;
    SCOPED_TRACE(absl::StrCat("case ", i, ": ", pipeline.ranks, " ranks, ", pipeline.microbatches,
                              " microbatches, ", pipeline.chunks, " chunks"));
    ListScheduler scheduler(pipeline);
    const BuildingBlock block = PlaceBlock(pipeline, random.gaps, random.interval);
    if (!scheduler.Play(block, random.rules)) continue;
    ++played;
    MakespanOfSteps(scheduler, random);
    // A second time as the first: nothing is left over.
    const RankOrders first = OrdersOf(scheduler, pipeline.ranks);
    ASSERT_TRUE(scheduler.Play(block, random.rules));
    EXPECT_EQ(OrdersOf(scheduler, pipeline.ranks), first);
  }
  EXPECT_GT(played, 500);
}

// The order of play is one in which each step comes after those that it waits for.
TEST(ListScheduler, StepsComeAfterThoseThatTheyWaitFor) {
  Draws draw;
  for (int i = 0; i < 300; ++i) {
    const Case random = RandomCase(draw);
    const BlockPipeline& pipeline = random.pipeline;
    ListScheduler scheduler(pipeline);
    const BuildingBlock block = PlaceBlock(pipeline, random.gaps, random.interval);
    if (!scheduler.Play(block, random.rules)) continue;
    std::vector<uint32_t> forwards(pipeline.stages(), 0);
    std::vector<uint32_t> backwards(pipeline.stages(), 0);
    std::vector<uint32_t> weights(pipeline.stages(), 0);
    for (const PlayedStep& step : scheduler.steps()) {
      EXPECT_EQ(pipeline.RankOf(step.stage), step.rank);
      if (step.kind == StepKind::kForward) {
        EXPECT_EQ(forwards[step.stage]++, step.microbatch);
        if (step.stage == 0) continue;
        EXPECT_GT(forwards[step.stage - 1], step.microbatch);
      } else if (step.kind == StepKind::kWeightGradient) {
        EXPECT_EQ(weights[step.stage]++, step.microbatch);
        EXPECT_GT(backwards[step.stage], step.microbatch);
      } else {
        EXPECT_EQ(backwards[step.stage]++, step.microbatch);
        EXPECT_GT(forwards[step.stage], step.microbatch);
        if (step.stage + 1 < pipeline.stages()) {
          EXPECT_GT(backwards[step.stage + 1], step.microbatch);
        }
      }
    }
    EXPECT_EQ(scheduler.steps().size(), pipeline.ranks * pipeline.StepsOfRank());
  }
}

}  // namespace
}  // namespace list_scheduler_test_cc
}  // namespace orrery::transforms
