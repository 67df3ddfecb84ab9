#include "search/pruning.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "ir/models/model_test_util.h"
#include "search/random_question_test_util.h"
#include "search/search.h"
#include "search/settings/setting_test_util.h"
#include "search/spaces/space_test_util.h"
#include "support/sanitized_test_util.h"

namespace orrery::search {
namespace pruning_test_cc {
namespace {

Result Found(int64_t picoseconds, int64_t bytes, int64_t dp = 1) {
  Result result;
  result.plan.dp = dp;
  result.ran = result.fits = true;
  result.step_time = Duration(picoseconds);
  result.peak_memory = Bytes(bytes);
  return result;
}

TEST(ParetoFront, IsWhatNoOtherIsBetterThan) {
  Result too_large = Found(1, 1);
  too_large.fits = false;
  const std::vector<Result> results = {Found(5, 5), Found(4, 9),    too_large,     Found(5, 5),
                                       Found(6, 5), Found(9, 9, 2), Found(3, 3, 2)};
  std::vector<ptrdiff_t> front;
  for (const Result* result : ParetoFront(results)) front.push_back(result - results.data());
  EXPECT_EQ(front, (std::vector<ptrdiff_t>{0, 1, 6}));
}

TEST(Incumbents, BeatWhatIsNeitherOfTheTopNorOnTheFront) {
  Incumbents incumbents(2);
  const auto beat = [&](int64_t picoseconds, int64_t bytes, int64_t ranks = 1) {
    return incumbents.Beat({.memory = Bytes(bytes), .time = Duration(picoseconds)}, ranks);
  };
  EXPECT_FALSE(beat(100, 100));
  incumbents.Add(Found(10, 10));
  EXPECT_FALSE(beat(100, 100));  // it would be the second
  incumbents.Add(Found(20, 30));
  EXPECT_TRUE(beat(21, 10));
  EXPECT_FALSE(beat(20, 10));  // as fast, for all that is known
  EXPECT_FALSE(beat(21, 9));   // leaner than both
  Result too_large = Found(1, 1);
  too_large.fits = false;
  incumbents.Add(too_large);
  EXPECT_FALSE(beat(20, 10));
  incumbents.Add(Found(5, 50, 4));
  EXPECT_TRUE(beat(11, 10));
  Incumbents on_more_devices(1);
  on_more_devices.Add(Found(10, 10, 4));
  EXPECT_FALSE(on_more_devices.Beat({.memory = Bytes(99), .time = Duration(99)}, 2));
}

// Two of the least memory are wanted: who is slower and larger than both is neither.
TEST(Incumbents, BeatByTheGoal) {
  Incumbents lean(2, Goal::kMemory);
  const auto beat = [](const Incumbents& incumbents, int64_t picoseconds, int64_t bytes,
                       int64_t ranks) {
    return incumbents.Beat({.memory = Bytes(bytes), .time = Duration(picoseconds)}, ranks);
  };
  lean.Add(Found(10, 30));
  lean.Add(Found(11, 30));
  EXPECT_TRUE(beat(lean, 12, 31, 1));
  EXPECT_TRUE(beat(lean, 12, 30, 1));   // as large, and slower than both
  EXPECT_FALSE(beat(lean, 11, 30, 1));  // it may be the second
  EXPECT_FALSE(beat(lean, 99, 29, 1));
  lean.Add(Found(1, 99));  // faster and larger: no more is beaten
  EXPECT_FALSE(beat(lean, 11, 30, 1));
  // By price: 20 on two devices are dearer than 30 on one, and are faster.
  Incumbents cheap(1, Goal::kPrice);
  cheap.Add(Found(30, 10));
  EXPECT_FALSE(beat(cheap, 20, 10, 2));
  EXPECT_TRUE(beat(cheap, 31, 10, 2));
  EXPECT_FALSE(beat(cheap, 31, 9, 2));  // on the front
}

std::string TextOf(const Result& result) {
  return absl::StrCat(ToString(result.plan), " ", ToString(result.step_time), " ",
                      ToString(result.peak_memory));
}

constexpr Goal kGoals[] = {Goal::kTime, Goal::kMemory, Goal::kPrice, Goal::kThroughput};

std::vector<std::string> TopOf(const std::vector<Result>& results, size_t top, Goal goal) {
  std::vector<std::string> texts;
  for (const Result* result : Ranked(results, goal)) {
    if (texts.size() < top) texts.push_back(TextOf(*result));
  }
  return texts;
}

std::vector<std::string> FrontOf(const std::vector<Result>& results) {
  std::vector<std::string> texts;
  for (const Result* result : ParetoFront(results)) texts.push_back(TextOf(*result));
  return texts;
}

std::vector<ParallelPlan> RandomPlans(std::mt19937& random) {
  std::vector<ParallelPlan> plans;
  const auto one_of = [&](std::vector<int64_t> values) { return values[random() % values.size()]; };
  while (plans.size() < 10) {
    ParallelPlan plan = {.dp = one_of({1, 2, 4, 8}),
                         .hp = one_of({1, 2, 4, 8}),
                         .pp = one_of({1, 2, 4}),
                         .microbatches = one_of({1, 1, 2, 4, 16, 128}),
                         .zero = one_of({0, 0, 1, 3})};
    const char* const policies[] = {"none", "full"};
    plan.recompute = transforms::ParseRecomputePolicy(policies[random() % 2]).value();
    if (plan.ranks() == 8) plans.push_back(plan);
  }
  return plans;
}

// Of products that take so long that nothing else counts; of so many layers that all stages have
// one.
Setting LargeMlp(const char* cluster = "uniform:16@2000Gbps,device=a100-80gb") {
  Setting setting = MlpSetting(cluster);
  setting.step = ir::BuildModel("mlp", "layers=4,dim=4096", 8192);
  EXPECT_TRUE(transforms::MakeTrainingStep(setting.step, {.optimizer = "adam"}).ok());
  setting.batch_size = 8192;
  return setting;
}

Setting SettingFor(int space) {
  if (space % 8 != 7) return LargeMlp();
  Setting setting = MlpSetting("uniform:16@200Gbps,device=a100-80gb");
  setting.step = ir::BuildModel("gpt", "layers=2,hidden=32,heads=2,seq=16,vocab=64", 48);
  EXPECT_TRUE(transforms::MakeTrainingStep(setting.step, {.optimizer = "adam"}).ok());
  return setting;
}

// Small spaces, each twice, with as much memory as fits some of each: what is pruned is
// nothing that anybody asked for, and for any number of threads the same.
TEST(Pruning, LeavesTheTopAndTheFrontAsTheyAre) {
  std::mt19937 random(20);
  int64_t pruned = 0, too_large = 0;
  const int spaces = CasesToWalk(40);
  for (int space = 0; space < spaces; ++space) {
    Setting setting = SettingFor(space);
    const std::vector<ParallelPlan> plans = RandomPlans(random);
    const int64_t top = 1 + static_cast<int64_t>(random() % 3);
    const Goal goal = kGoals[random() % std::size(kGoals)];
    const auto one = Play(setting, plans[random() % plans.size()]);
    if (space % 2 == 1 && one.ok()) setting.lowering.memory_limit = one->report.peak_memory;
    const ReliefOf relief = [](const ParallelPlan& plan) {
      ParallelPlan other = plan;
      other.recompute = transforms::ParseRecomputePolicy("full").value();
      if (other == plan) return std::vector<ParallelPlan>{};
      return std::vector<ParallelPlan>{other};
    };
    const SearchOptions all = {.relief = space % 3 == 0 ? relief : ReliefOf()};
    const std::vector<Result> expected = RunSearch(setting, plans, all).value();
    std::string csv;
    for (const int32_t threads : {1, 3}) {
      SearchOptions options = all;
      options.threads = threads;
      options.top = top;
      options.goal = goal;
      const std::vector<Result> results = RunSearch(setting, plans, options).value();
      EXPECT_EQ(TopOf(results, static_cast<size_t>(top), goal),
                TopOf(expected, static_cast<size_t>(top), goal))
          << ToString(goal);
      EXPECT_EQ(FrontOf(results), FrontOf(expected));
      if (threads == 1) csv = ResultsCsv(setting, results);
      EXPECT_EQ(ResultsCsv(setting, results), csv);
      for (const Result& result : results) {
        pruned += result.pruned.empty() ? 0 : 1;
        too_large += !result.ran && result.infeasible.has_value() ? 1 : 0;
      }
    }
  }
  EXPECT_GT(4 * pruned, spaces);
  EXPECT_GT(4 * too_large, spaces);
}

// The same of questions of all sorts: other models, stacks, devices and schedules. Few of them have
// rows to prune.
TEST(Pruning, LeavesTheAnswersOfRandomQuestionsAsTheyAre) {
  for (uint32_t seed = 1000; seed < 1000 + CasesToWalk(12u); ++seed) {
    Drawing draw(seed);
    const Setting setting = DrawQuestion(draw);
    std::vector<ParallelPlan> plans;
    std::vector<Result> expected;
    while (plans.size() < 10) {
      const ParallelPlan plan = DrawPlanFor16(draw, setting);
      auto result = Evaluate(setting, plan);
      if (!result.ok()) continue;
      plans.push_back(plan);
      expected.push_back(*std::move(result));
    }
    const int64_t top = draw.Of<int64_t>({1, 1, 2});
    for (const Goal goal : kGoals) {
      const std::vector<Result> results =
          RunSearch(setting, plans, {.top = top, .goal = goal}).value();
      EXPECT_EQ(TopOf(results, static_cast<size_t>(top), goal),
                TopOf(expected, static_cast<size_t>(top), goal))
          << "seed " << seed << ", " << ToString(goal);
      EXPECT_EQ(FrontOf(results), FrontOf(expected)) << "seed " << seed;
    }
  }
}

// What is wrong with the question is told all the same.
TEST(Pruning, GivesTheErrorsOfWhatIsNotPruned) {
  const std::vector<ParallelPlan> plans = {{.hp = 8}, {.dp = 100}};
  EXPECT_FALSE(RunSearch(MlpSetting(), plans, {.top = 1}).ok());
}

TEST(Pruning, LeavesRowsWithoutFigures) {
  const Setting setting = LargeMlp();
  const std::vector<Result> results =
      RunSearch(setting, {{.dp = 4, .microbatches = 2048}, {.hp = 4}}, {.top = 1}).value();
  const std::vector<std::string> lines = absl::StrSplit(ResultsCsv(setting, results), '\n');
  EXPECT_THAT(lines[1], testing::HasSubstr(",,,,,,,,,\"pruned: a step takes "));
  EXPECT_THAT(ResultsTable(setting, results, 1),
              testing::HasSubstr("1 of 2 candidates are pruned"));
}

}  // namespace
}  // namespace pruning_test_cc
}  // namespace orrery::search
