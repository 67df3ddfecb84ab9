#include "transforms/schedules/building_block.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>
#include <set>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"

namespace orrery::transforms {
namespace building_block_test_cc {
namespace {

using ::testing::ElementsAre;

BlockPipeline V(size_t ranks) { return {.ranks = ranks, .chunks = 2}; }

std::vector<int32_t> Ones(const BlockPipeline& pipeline) {
  return std::vector<int32_t>(2 * pipeline.stages() - 1, 1);
}

TEST(BlockPipeline, SaysWhoHoldsWhat) {
  const BlockPipeline v = V(3);
  for (size_t rank = 0; rank < 3; ++rank) {
    EXPECT_EQ(v.RankOf(v.StageOf(rank, 0)), rank);
    EXPECT_EQ(v.RankOf(v.StageOf(rank, 1)), rank);
  }
  EXPECT_EQ(v.StageOf(1, 1), 4u);
  EXPECT_EQ((BlockPipeline{.ranks = 3, .microbatches = 5}.StepsOfRank()), 15u);
  EXPECT_EQ((BlockPipeline{.microbatches = 5, .chunks = 2, .splits_backward = false}.StepsOfRank()),
            20u);
}

// The block of V-Min: a step a slot, down the V and up, and back the same way.
TEST(PlaceBlock, StepsFollowEachOtherWhereNobodyIsInTheWay) {
  const BuildingBlock block = PlaceBlock(V(4), Ones(V(4)), 6);
  EXPECT_THAT(block.forward, ElementsAre(0, 1, 2, 3, 4, 5, 6, 7));
  EXPECT_THAT(block.backward, ElementsAre(15, 14, 13, 12, 11, 10, 9, 8));
  EXPECT_EQ(block.interval, 6);
}

// With three ranks the backward of stage 2 would come when the next microbatch's forward of stage 3
// does: both on rank 2.
TEST(PlaceBlock, AStepThatIsInTheWayOfAnotherMicrobatchComesLater) {
  const BuildingBlock block = PlaceBlock(V(3), Ones(V(3)), 6);
  EXPECT_THAT(block.forward, ElementsAre(0, 1, 2, 3, 4, 5));
  EXPECT_THAT(block.backward, ElementsAre(14, 12, 11, 10, 8, 7));
}

TEST(PlaceBlock, WholeBackwardsTakeTwoSlots) {
  const BlockPipeline pipeline = {.ranks = 3, .splits_backward = false};
  const std::vector<int32_t> gaps = {1, 1, 1, 2, 2};
  const BuildingBlock block = PlaceBlock(pipeline, gaps, 3);
  EXPECT_THAT(block.forward, ElementsAre(0, 1, 2));
  EXPECT_THAT(block.backward, ElementsAre(7, 5, 3));
}

TEST(PlaceBlock, AsManyRanksAsOneHaveNoWay) {
  const BuildingBlock block = PlaceBlock({}, std::vector<int32_t>{1}, 3);
  EXPECT_THAT(block.forward, ElementsAre(0));
  EXPECT_THAT(block.backward, ElementsAre(1));
}

// The slots in which a rank runs F or I, all microbatches thrown together.
std::multiset<int32_t> SlotsOfRank(const BlockPipeline& pipeline, const BuildingBlock& block,
                                   size_t rank) {
  std::multiset<int32_t> slots;
  for (size_t chunk = 0; chunk < pipeline.chunks; ++chunk) {
    const size_t stage = pipeline.StageOf(rank, chunk);
    slots.insert(block.forward[stage] % block.interval);
    slots.insert(block.backward[stage] % block.interval);
  }
  return slots;
}

TEST(PlaceBlock, NoRankHasTwoStepsAtATimeAndGapsAreKept) {
  std::mt19937 random(3);
  const auto draw = [&](int32_t low, int32_t high) {
    return std::uniform_int_distribution<int32_t>(low, high)(random);
  };
  for (int i = 0; i < 300; ++i) {
    const BlockPipeline pipeline = {.ranks = static_cast<size_t>(draw(1, 9)),
                                    .chunks = static_cast<size_t>(draw(1, 2))};
    std::vector<int32_t> gaps = Ones(pipeline);
    for (int32_t& gap : gaps) gap = draw(1, 4);
    const int32_t interval = pipeline.ShortestInterval() + draw(0, 3);
    const BuildingBlock block = PlaceBlock(pipeline, gaps, interval);
    SCOPED_TRACE(absl::StrCat(pipeline.ranks, " ranks, ", pipeline.chunks, " chunks"));
    for (size_t rank = 0; rank < pipeline.ranks; ++rank) {
      const std::multiset<int32_t> slots = SlotsOfRank(pipeline, block, rank);
      EXPECT_EQ(std::set<int32_t>(slots.begin(), slots.end()).size(), slots.size());
    }
    std::vector<int32_t> way = block.forward;
    way.insert(way.end(), block.backward.rbegin(), block.backward.rend());
    for (size_t step = 0; step + 1 < way.size(); ++step) {
      EXPECT_GE(way[step + 1] - way[step], gaps[step]) << step;
      EXPECT_LT(way[step + 1] - way[step], gaps[step] + interval) << step;
    }
  }
}

}  // namespace
}  // namespace building_block_test_cc
}  // namespace orrery::transforms
