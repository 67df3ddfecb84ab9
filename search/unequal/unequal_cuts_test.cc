#include "search/unequal/unequal_cuts.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <numeric>
#include <random>

namespace orrery::search {
namespace unequal_cuts_test_cc {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Optional;

PacedStage Stage(std::vector<double> pace) {
  PacedStage stage;
  stage.state_bytes = stage.kept_bytes = std::vector<double>(pace.size(), 0);
  stage.pace = std::move(pace);
  return stage;
}

std::vector<PacedStage> RandomStages(uint32_t seed) {
  std::mt19937 random(seed);
  const size_t layers = 3 + random() % 6, stages = 1 + random() % 3;
  std::vector<PacedStage> made;
  for (size_t s = 0; s < stages; ++s) {
    PacedStage stage;
    for (size_t l = 0; l < layers; ++l) {
      stage.pace.push_back(static_cast<double>(1 + random() % 20));
      stage.state_bytes.push_back(static_cast<double>(1 + random() % 5));
      stage.kept_bytes.push_back(static_cast<double>(random() % 3));
    }
    stage.in_flight = static_cast<double>(stages - s);
    stage.limit = random() % 2 == 0 ? 0 : static_cast<double>(10 + random() % 20);
    made.push_back(std::move(stage));
  }
  return made;
}

bool Fits(const std::vector<PacedStage>& stages, const std::vector<int64_t>& layers) {
  size_t layer = 0;
  for (size_t s = 0; s < stages.size(); ++s) {
    double bytes = 0;
    for (int64_t i = 0; i < layers[s]; ++i, ++layer) {
      bytes += stages[s].state_bytes[layer] + stages[s].in_flight * stages[s].kept_bytes[layer];
    }
    if (stages[s].limit > 0 && bytes > stages[s].limit) return false;
  }
  return true;
}

// The least T of all cuts, by recursion.
double Least(const std::vector<PacedStage>& stages, int64_t microbatches, bool limits,
             std::vector<int64_t>& layers) {
  const auto all = static_cast<int64_t>(stages.front().pace.size());
  const int64_t left = all - std::accumulate(layers.begin(), layers.end(), int64_t{0});
  if (layers.size() == stages.size()) {
    const bool counts = left == 0 && (!limits || Fits(stages, layers));
    return counts ? StepSecondsOf(stages, layers, microbatches)
                  : std::numeric_limits<double>::infinity();
  }
  double least = std::numeric_limits<double>::infinity();
  for (int64_t count = 1; count <= left; ++count) {
    layers.push_back(count);
    least = std::min(least, Least(stages, microbatches, limits, layers));
    layers.pop_back();
  }
  return least;
}

TEST(UnequalCuts, GiveTheFasterStageMoreLayers) {
  // The second stage is three times as fast.
  const std::vector<PacedStage> stages = {Stage({3, 3, 3, 3, 3, 3, 3, 3}),
                                          Stage({1, 1, 1, 1, 1, 1, 1, 1})};
  EXPECT_THAT(CutByPace(stages, 8, false), Optional(ElementsAre(2, 6)));
  EXPECT_DOUBLE_EQ(StepSecondsOf(stages, {2, 6}, 8), 12 + 7 * 6);
}

TEST(UnequalCuts, KeepToTheMemoryOfAStage) {
  std::vector<PacedStage> stages = {Stage({3, 3, 3, 3}), Stage({1, 1, 1, 1})};
  stages[1].state_bytes = {1, 1, 1, 1};
  stages[1].limit = 2;
  EXPECT_THAT(CutByPace(stages, 8, true), Optional(ElementsAre(2, 2)));
  EXPECT_THAT(CutByPace(stages, 8, false), Optional(ElementsAre(1, 3)));
  stages[0].state_bytes = {5, 5, 5, 5};
  stages[0].limit = 4;
  EXPECT_EQ(CutByPace(stages, 8, true), std::nullopt);
  EXPECT_EQ(CutByPace({Stage({1}), Stage({1})}, 8, false), std::nullopt);  // one layer for two
}

TEST(UnequalCuts, EqualEnumeration) {
  for (uint32_t seed = 0; seed < 200; ++seed) {
    const std::vector<PacedStage> stages = RandomStages(seed);
    for (const int64_t microbatches : {1, 2, 16}) {
      for (const bool limits : {false, true}) {
        std::vector<int64_t> none;
        const double least = Least(stages, microbatches, limits, none);
        const auto cut = CutByPace(stages, microbatches, limits);
        ASSERT_EQ(cut.has_value(), least < std::numeric_limits<double>::infinity()) << seed;
        if (!cut.has_value()) continue;
        EXPECT_DOUBLE_EQ(StepSecondsOf(stages, *cut, microbatches), least) << seed;
        EXPECT_TRUE(!limits || Fits(stages, *cut)) << seed;
      }
    }
  }
}

TEST(UnequalCuts, BesideAreAboutAsFastAndTheFastestFirst) {
  // 4, 4 takes 4 + 4 + 7 · 4 = 36; 5, 3 and 3, 5 take 8 + 7 · 5 = 43.
  const std::vector<PacedStage> alike(2, Stage(std::vector<double>(8, 1)));
  EXPECT_THAT(CutsBeside(alike, {4, 4}, 8, 4), IsEmpty());
  // Of 5 layers the slowest stage has 3 in both; the first of the second stage is dearer.
  const std::vector<PacedStage> odd = {Stage({1, 1, 1, 1, 1}), Stage({1, 1, 1, 1, 1.1})};
  EXPECT_THAT(CutsBeside(odd, {3, 2}, 4, 4), ElementsAre(ElementsAre(2, 3)));
  EXPECT_THAT(CutsBeside(odd, {3, 2}, 4, 0), IsEmpty());
  const std::vector<PacedStage> three(3, Stage(std::vector<double>(30, 1)));
  const auto beside = CutsBeside(three, {10, 10, 10}, 2, 3);
  ASSERT_EQ(beside.size(), 3);  // of 4 that are alike
  for (const auto& cut : beside) {
    EXPECT_EQ(std::accumulate(cut.begin(), cut.end(), int64_t{0}), 30);
    EXPECT_EQ(StepSecondsOf(three, cut, 2), 41);
  }
  const std::vector<PacedStage> single(2, Stage({1, 1}));
  EXPECT_THAT(CutsBeside(single, {1, 1}, 4, 4), IsEmpty());  // each has a layer
}

TEST(AllCuts, AreAllWhereThereAreFew) {
  EXPECT_THAT(AllCuts(4, 2, 3),
              ElementsAre(ElementsAre(1, 3), ElementsAre(2, 2), ElementsAre(3, 1)));
  EXPECT_THAT(AllCuts(4, 2, 2), IsEmpty());
  EXPECT_THAT(AllCuts(3, 3, 1), ElementsAre(ElementsAre(1, 1, 1)));
  EXPECT_THAT(AllCuts(2, 3, 8), IsEmpty());
  EXPECT_EQ(AllCuts(6, 4, 24).size(), 10u);
}

TEST(UnequalCuts, EqualLayersComeFirst) {
  EXPECT_THAT(CutEqually(10, 4), ElementsAre(3, 3, 2, 2));
  EXPECT_THAT(CutEqually(3, 3), ElementsAre(1, 1, 1));
}

TEST(SharesBySpeed, AddUpAndAreInProportion) {
  EXPECT_THAT(SharesBySpeed({1, 1}, 8), ElementsAre(4, 4));
  EXPECT_THAT(SharesBySpeed({1, 3}, 8), ElementsAre(6, 2));
  EXPECT_THAT(SharesBySpeed({1, 100}, 2), ElementsAre(1, 1));
  std::mt19937 random(1);
  for (int i = 0; i < 100; ++i) {
    std::vector<double> seconds(1 + random() % 4);
    for (double& one : seconds) one = static_cast<double>(1 + random() % 10);
    const auto count = static_cast<int64_t>(seconds.size() + random() % 12);
    const std::vector<int64_t> shares = SharesBySpeed(seconds, count);
    EXPECT_EQ(std::accumulate(shares.begin(), shares.end(), int64_t{0}), count);
    double last = 0;
    for (size_t r = 0; r < shares.size(); ++r) {
      EXPECT_GE(shares[r], 1);
      last = std::max(last, static_cast<double>(shares[r]) * seconds[r]);
    }
    // One microbatch less anywhere cannot be taken by another without being later, or as late.
    for (size_t to = 0; to < shares.size(); ++to) {
      for (size_t from = 0; from < shares.size(); ++from) {
        const bool holds_up = static_cast<double>(shares[from]) * seconds[from] == last;
        if (to == from || shares[from] == 1 || !holds_up) continue;
        EXPECT_GE(static_cast<double>(shares[to] + 1) * seconds[to], last - 1e-9);
      }
    }
  }
}

}  // namespace
}  // namespace unequal_cuts_test_cc
}  // namespace orrery::search
