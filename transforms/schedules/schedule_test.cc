#include "transforms/schedules/schedule.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/status.h"

// The list of schedules, the shapes that they take, and who holds what.

namespace orrery::transforms {
namespace schedule_test_cc {
namespace {

using ::testing::ElementsAre;

TEST(FindSchedule, KnowsEveryNameOfTheList) {
  std::vector<absl::string_view> names;
  for (const PipelineSchedule* schedule : AllSchedules()) {
    names.push_back(schedule->name);
    ASSERT_TRUE(FindSchedule(schedule->name).ok());
    EXPECT_EQ(*FindSchedule(schedule->name), schedule);
  }
  EXPECT_THAT(names, testing::IsSupersetOf({"gpipe", "1f1b", "interleaved", "looped-bfs",
                                            "interleaved-zero-bubble", "zbv", "dualpipe",
                                            "dualpipe-v", "chimera", "terapipe", "pipedream",
                                            "pipedream-2bw", "pipemare", "ampnet", "distir"}));
}

TEST(FindSchedule, ErrorListsTheNames) {
  EXPECT_EQ(FindSchedule("1F1B").status().message(),
            "schedule '1F1B' is unknown; did you mean 1f1b? `list-schedules` names all");
  const absl::Status status = FindSchedule("unheard-of").status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(status.message()),
              testing::StartsWith("schedule 'unheard-of' is unknown; wanted one of gpipe, 1f1b, "));
}

TEST(FindSchedule, AsynchronousOnesSayHowOftenTheyUpdate) {
  std::vector<absl::string_view> names;
  for (const PipelineSchedule* schedule : AllSchedules()) {
    if (schedule->asynchronous) names.push_back(schedule->name);
    if (schedule->microbatches_an_update == nullptr) continue;
    EXPECT_TRUE(schedule->asynchronous) << schedule->name;
    EXPECT_GE(schedule->microbatches_an_update(schedule->ShapeOf(3, 5)), 1);
  }
  EXPECT_THAT(names, ElementsAre("pipedream", "pipedream-2bw", "pipemare", "ampnet"));
}

int32_t ChunksOf(absl::string_view name, int32_t wanted) {
  return FindSchedule(name).value()->ShapeOf(4, 8, wanted).chunks;
}

TEST(ShapeOf, TakesTheChunksThatAreWantedOnlyWhereTheyAreAChoice) {
  EXPECT_EQ(ChunksOf("interleaved", 0), 2);
  EXPECT_EQ(ChunksOf("interleaved", 3), 3);
  EXPECT_EQ(ChunksOf("1f1b", 0), 1);
  EXPECT_EQ(ChunksOf("1f1b", 3), 1);
  EXPECT_EQ(ChunksOf("zbv", 0), 2);
  const PipelineShape shape = FindSchedule("interleaved").value()->ShapeOf(4, 8, 3);
  EXPECT_EQ(shape.ranks, 4);
  EXPECT_EQ(shape.microbatches, 8);
  EXPECT_EQ(shape.stages(), 12);
}

std::string WhyNot(absl::string_view name, const PipelineShape& shape) {
  const absl::Status status = FindSchedule(name).value()->CheckShape(shape);
  EXPECT_EQ(status.ok(), !AsInfeasible(status).has_value());
  return std::string(status.message());
}

TEST(CheckShape, SaysWhatIsWanted) {
  EXPECT_EQ(WhyNot("1f1b", {.ranks = 4, .microbatches = 1}), "");
  EXPECT_EQ(WhyNot("interleaved", {.ranks = 4, .microbatches = 9, .chunks = 3}), "");
  EXPECT_EQ(WhyNot("1f1b", {.ranks = 0}),
            "schedule 1f1b: 0 ranks, 1 microbatches, 1 chunk; wanted at least one of each");
  EXPECT_EQ(WhyNot("1f1b", {.ranks = 2, .microbatches = 3, .chunks = 2}),
            "schedule 1f1b: 2 ranks, 3 microbatches, 2 chunks; wanted 1 chunk a rank");
  EXPECT_EQ(WhyNot("zbv", {.ranks = 2, .microbatches = 3, .chunks = 4}),
            "schedule zbv: 2 ranks, 3 microbatches, 4 chunks; wanted 2 chunks a rank");
  EXPECT_EQ(WhyNot("dualpipe-v", {.ranks = 4, .microbatches = 7, .chunks = 2}),
            "schedule dualpipe-v: 4 ranks, 7 microbatches, 2 chunks; wanted at least twice as many "
            "microbatches as ranks");
  EXPECT_THAT(WhyNot("dualpipe", {.ranks = 3, .microbatches = 8, .chunks = 2}),
              testing::EndsWith("wanted even numbers of ranks and microbatches, at least two "
                                "microbatches a rank"));
  for (const PipelineShape& shape : {PipelineShape{.ranks = 5, .microbatches = 8, .chunks = 2},
                                     PipelineShape{.ranks = 4, .microbatches = 1, .chunks = 2}}) {
    EXPECT_THAT(WhyNot("chimera", shape),
                testing::EndsWith("wanted an even number of ranks, and a microbatch for each "
                                  "direction"));
  }
}

std::vector<int32_t> Holders(StagePlacement placement, const PipelineShape& shape) {
  std::vector<int32_t> ranks;
  for (int32_t stage = 0; stage < shape.stages(); ++stage) {
    ranks.push_back(RankOf(placement, shape, stage));
  }
  return ranks;
}

TEST(Placement, SaysWhichRankHoldsWhichStage) {
  EXPECT_THAT(Holders(StagePlacement::kLoop, {.ranks = 3}), ElementsAre(0, 1, 2));
  const PipelineShape two = {.ranks = 3, .chunks = 2};
  EXPECT_THAT(Holders(StagePlacement::kLoop, two), ElementsAre(0, 1, 2, 0, 1, 2));
  EXPECT_THAT(Holders(StagePlacement::kV, two), ElementsAre(0, 1, 2, 2, 1, 0));
  EXPECT_THAT(Holders(StagePlacement::kTwoWay, two), ElementsAre(0, 1, 2, 2, 1, 0));
}

TEST(Placement, OnlyTwoWayHasASecondPipelineWhichTheSecondHalfOfTheMicrobatchesTakes) {
  std::vector<int32_t> pipelines;
  for (int32_t microbatch = 0; microbatch < 5; ++microbatch) {
    const PipelineShape shape = {.ranks = 2, .microbatches = 5, .chunks = 2};
    pipelines.push_back(PipelineOf(StagePlacement::kTwoWay, shape, microbatch));
    EXPECT_EQ(PipelineOf(StagePlacement::kV, shape, microbatch), 0);
  }
  EXPECT_THAT(pipelines, ElementsAre(0, 0, 0, 1, 1));
  EXPECT_EQ(Pipelines(StagePlacement::kTwoWay), 2);
  EXPECT_EQ(Pipelines(StagePlacement::kLoop), 1);
  EXPECT_EQ(Pipelines(StagePlacement::kV), 1);
}

}  // namespace
}  // namespace schedule_test_cc
}  // namespace orrery::transforms
