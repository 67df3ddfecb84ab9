#include "transforms/schedules/order_judge.h"

#include <gtest/gtest.h>

#include <limits>
#include <numeric>
#include <random>
#include <vector>

#include "absl/strings/str_cat.h"
#include "transforms/schedules/orders.h"

namespace orrery::transforms {
namespace order_judge_test_cc {
namespace {

constexpr OrderScore kWorst = {.makespan = std::numeric_limits<int64_t>::max()};

int64_t Draw(std::mt19937& random, int64_t low, int64_t high) {
  return std::uniform_int_distribution<int64_t>(low, high)(random);
}

BlockPipeline RandomPipeline(std::mt19937& random) {
  BlockPipeline pipeline = {.ranks = static_cast<size_t>(Draw(random, 1, 7)),
                            .microbatches = static_cast<size_t>(Draw(random, 1, 12)),
                            .chunks = static_cast<size_t>(Draw(random, 1, 2)),
                            .splits_backward = Draw(random, 0, 1) == 1};
  for (size_t rank = 0; rank < pipeline.ranks; ++rank) {
    pipeline.live_limits.push_back(Draw(random, 2, 20));
  }
  return pipeline;
}

StepDurations RandomDurations(std::mt19937& random) {
  return {.forward = Draw(random, 1, 9),
          .input_gradient = Draw(random, 1, 9),
          .weight_gradient = Draw(random, 0, 9),
          .send = Draw(random, 0, 3)};
}

// Any orders within the limits: those of a block with long intervals, so that every limit is kept.
std::vector<PlayedStep> AnySteps(const BlockPipeline& pipeline, std::mt19937& random) {
  ListScheduler scheduler(pipeline);
  std::vector<int32_t> gaps;
  for (size_t i = 0; i + 1 < 2 * pipeline.stages(); ++i) {
    gaps.push_back(static_cast<int32_t>(Draw(random, 1, 2)));
  }
  const ListRules rules = {.durations = RandomDurations(random), .waits = Draw(random, 0, 1) == 1};
  for (int32_t interval = pipeline.ShortestInterval();; ++interval) {
    if (scheduler.Play(PlaceBlock(pipeline, gaps, interval), rules)) return scheduler.steps();
  }
}

struct Played {
  RankOrders orders;
  Timing timing;
};

// The same by the player of all schedules.
Played Replay(const std::vector<PlayedStep>& steps, const BlockPipeline& pipeline,
              const StepDurations& durations) {
  Played played;
  played.orders.resize(pipeline.ranks);
  for (const PlayedStep& step : steps) {
    played.orders[step.rank].push_back({.kind = step.kind,
                                        .stage = static_cast<int32_t>(step.stage),
                                        .microbatch = static_cast<int32_t>(step.microbatch)});
  }
  const PipelineShape shape = {.ranks = static_cast<int32_t>(pipeline.ranks),
                               .microbatches = static_cast<int32_t>(pipeline.microbatches),
                               .chunks = static_cast<int32_t>(pipeline.chunks)};
  played.timing =
      TimeOrders(played.orders, pipeline.chunks == 2 ? StagePlacement::kV : StagePlacement::kLoop,
                 shape, durations);
  return played;
}

TEST(OrderJudge, CountsWhatThePlayerOfAllSchedulesCounts) {
  std::mt19937 random(5);
  for (int i = 0; i < 300; ++i) {
    const BlockPipeline pipeline = RandomPipeline(random);
    const std::vector<PlayedStep> steps = AnySteps(pipeline, random);
    const StepDurations durations =
        i % 3 == 0 ? StepDurations{.forward = 4, .input_gradient = 4, .weight_gradient = 4}
                   : RandomDurations(random);
    SCOPED_TRACE(absl::StrCat("case ", i));
    OrderJudge judge(pipeline, durations);
    const OrderScore score = judge.Score(steps, kWorst);
    const Played played = Replay(steps, pipeline, durations);
    EXPECT_EQ(score.makespan, played.timing.makespan);
    const auto& idle = played.timing.idle_inside;
    EXPECT_EQ(score.idle_inside, std::accumulate(idle.begin(), idle.end(), int64_t{0}));
    EXPECT_EQ(score.has_gaps, score.idle_inside > 0);
    int64_t live = 0;
    for (const auto& order : played.orders) live += PeakLive(order);
    EXPECT_EQ(score.live, live);
    if (!judge.AllLastTheSame()) {
      EXPECT_EQ(score.transformer_makespan, 0);
      EXPECT_EQ(score.other_makespans, 0);
      continue;
    }
    EXPECT_EQ(score.transformer_makespan,
              Replay(steps, pipeline, kTransformerDurations).timing.makespan);
    int64_t others = 0;
    for (const StepDurations& other : kOtherDurations) {
      others += Replay(steps, pipeline, other).timing.makespan;
    }
    EXPECT_EQ(score.other_makespans, others);
  }
}

// It may stop counting, but not take a worse score for a better one.
TEST(OrderJudge, AScoreThatIsNotCountedToTheEndIsStillTheWorse) {
  std::mt19937 random(6);
  for (int i = 0; i < 200; ++i) {
    const BlockPipeline pipeline = RandomPipeline(random);
    const StepDurations durations = i % 2 == 0 ? StepDurations{} : RandomDurations(random);
    OrderJudge judge(pipeline, durations);
    const std::vector<PlayedStep> one = AnySteps(pipeline, random);
    const std::vector<PlayedStep> other = AnySteps(pipeline, random);
    const OrderScore of_one = judge.Score(one, kWorst);
    const OrderScore of_other = judge.Score(other, kWorst);
    EXPECT_EQ(judge.Score(other, of_one) < of_one, of_other < of_one);
    EXPECT_EQ(judge.Score(one, of_other) < of_other, of_one < of_other);
  }
}

TEST(OrderJudge, NothingFallsShortOfTheBound) {
  std::mt19937 random(7);
  for (int i = 0; i < 500; ++i) {
    const BlockPipeline pipeline = RandomPipeline(random);
    const StepDurations durations = RandomDurations(random);
    OrderJudge judge(pipeline, durations);
    const OrderScore score = judge.Score(AnySteps(pipeline, random), kWorst);
    EXPECT_GE(score.makespan, judge.LowerBound(durations));
    EXPECT_EQ(judge.IsShortest(score), score.makespan == judge.LowerBound(durations));
  }
}

int64_t UnitLowerBound(const BlockPipeline& pipeline) {
  return OrderJudge(pipeline, {}).LowerBound({});
}

TEST(OrderJudge, BoundsAreThoseThatOneFindsByHand) {
  // The last of four ranks starts after three forwards and has eight microbatches to run.
  BlockPipeline pipeline = {.ranks = 4, .microbatches = 8, .live_limits = {8, 8, 8, 8}};
  EXPECT_EQ(UnitLowerBound(pipeline), 3 + 3 * 8);
  // One live: rank 0 waits from the end of its first forward for a way there and back of six steps.
  pipeline.live_limits = {1, 1, 1, 1};
  EXPECT_EQ(UnitLowerBound(pipeline), 7 - 1 + 3 * 8);
  // Few microbatches: what comes before the first backward of stage 0, and all of those with W.
  pipeline = {.ranks = 8, .microbatches = 4, .live_limits = std::vector<int64_t>(8, 16)};
  EXPECT_EQ(UnitLowerBound(pipeline), 8 + 7 + 2 * 4);
  // V-Half, four ranks: the last of them runs six of the eight forwards before a backward comes.
  pipeline = {.ranks = 4, .microbatches = 8, .chunks = 2, .live_limits = {6, 6, 6, 6}};
  EXPECT_EQ(UnitLowerBound(pipeline), 8 + 3 - 6 + 2 * 3 * 8);
  // A step of the last stage, whole backwards: of two ranks, all microbatches one after the other.
  pipeline = {
      .ranks = 2, .microbatches = 2, .chunks = 2, .splits_backward = false, .live_limits = {4, 4}};
  EXPECT_EQ(UnitLowerBound(pipeline), 3 + 2 * 3 + 3 * 2);
}

}  // namespace
}  // namespace order_judge_test_cc
}  // namespace orrery::transforms
