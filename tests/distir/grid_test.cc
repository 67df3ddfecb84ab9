#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "search/search.h"
#include "search/spaces/space.h"
#include "tests/distir/play.h"
#include "transforms/plan/plan_text.h"

// The notebook's grid search as a user runs it: `grid_search --preset distir --model
// mlp:layers=64,dim=8192 --batch-size 8192 --cluster uniform:16@200Gbps`.

namespace orrery::distir {
namespace grid_test_cc {
namespace {

using transforms::ParallelPlan;

constexpr int64_t kDevices = 16;

search::Setting NotebookSetting() {
  return MakeSetting({.layers = 64, .dim = 8192, .batch = 8192, .dp = kDevices});
}

std::vector<ParallelPlan> NotebookPlans() {
  search::Space space(PlanOf({}));
  EXPECT_TRUE(space.List(*transforms::FindAxis("micro-batches"), "distir").ok());
  return search::Enumerate(space, {.devices = kDevices, .batch_size = 8192}).value().All();
}

TEST(DistirGrid, HasThePlansOfTheNotebookInItsOrder) {
  std::vector<ParallelPlan> expected;
  for (const Golden& golden : ReadGolden("grid.json")) {
    if (golden.config.ranks() == kDevices) expected.push_back(PlanOf(golden.config));
  }
  EXPECT_EQ(expected.size(), 52u);
  EXPECT_EQ(NotebookPlans(), expected);
}

TEST(DistirGrid, BestIsDataAndHorizontalParallel) {
  const auto results = search::RunSearch(NotebookSetting(), NotebookPlans(), {.threads = 2});
  ASSERT_TRUE(results.ok()) << results.status();
  const std::vector<const search::Result*> ranked = search::Ranked(*results);
  ASSERT_EQ(ranked.size(), 52u);
  EXPECT_EQ(ToString(ranked[0]->plan, PlanOf({})),
            "--dp 4 --hp 4 --pp 1 --micro-batches 1 --schedule distir");
  EXPECT_NEAR(ranked[0]->figures.throughput_samples_per_s, 5491.04, 0.005);
}

// A search plays runs of kernels, which is not to be seen.
TEST(DistirGrid, SearchesHaveTheFiguresOfDistir) {
  const auto results = search::RunSearch(NotebookSetting(), NotebookPlans(), {.threads = 2});
  ASSERT_TRUE(results.ok()) << results.status();
  int found = 0;
  for (const Golden& golden : ReadGolden("grid.json")) {
    if (golden.config.ranks() != kDevices) continue;
    const ParallelPlan plan = PlanOf(golden.config);
    SCOPED_TRACE(ToString(plan, PlanOf({})));
    const auto result = std::ranges::find(*results, plan, &search::Result::plan);
    ASSERT_NE(result, results->end());
    EXPECT_NEAR(result->step_time.seconds(), golden.figures.makespan_s, 1e-6);
    const int64_t expected = std::ranges::max(golden.peak_memory_bytes);
    EXPECT_THAT(result->peak_memory.count(), testing::AnyOf(expected, expected - 4));
    ++found;
  }
  EXPECT_EQ(found, 52);
}

TEST(DistirGrid, SequentialStepTakesFifteenSeconds) {
  const auto run = Play({.layers = 64, .dim = 8192, .batch = 8192, .dp = 1, .optimizer = false});
  ASSERT_TRUE(run.ok()) << run.status();
  EXPECT_NEAR(run->report.step_time.seconds(), 15.2552549783121, 1e-9);
}

TEST(DistirGrid, FoldingChangesNoPicosecond) {
  const std::vector<ParallelPlan> plans = NotebookPlans();
  const Case shape = {.layers = 64, .dim = 8192, .batch = 8192, .dp = kDevices};
  const search::Setting folded = MakeSetting(shape), unfolded = MakeSetting(shape, false);
  for (size_t i = 0; i < plans.size(); i += 7) {
    SCOPED_TRACE(ToString(plans[i]));
    const auto few = search::Play(folded, plans[i]);
    const auto all = search::Play(unfolded, plans[i]);
    ASSERT_TRUE(few.ok() && all.ok());
    EXPECT_EQ(all->program.rank_count(), kDevices);
    EXPECT_EQ(few->program.rank_count(), plans[i].pp);
    EXPECT_EQ(few->report.step_time, all->report.step_time);
    EXPECT_EQ(ByRank(*few).finish_s, ByRank(*all).finish_s);
    EXPECT_EQ(ByRank(*few).peak_memory_bytes, ByRank(*all).peak_memory_bytes);
    EXPECT_EQ(few->report.bytes_sent, all->report.bytes_sent);
    EXPECT_EQ(few->report.bytes_reduced, all->report.bytes_reduced);
  }
}

}  // namespace
}  // namespace grid_test_cc
}  // namespace orrery::distir
