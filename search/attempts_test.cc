#include "search/attempts.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "ir/models/model_test_util.h"
#include "search/setting_test_util.h"
#include "support/status.h"
#include "transforms/plan/plan_test_util.h"
#include "transforms/plan/plan_text.h"

namespace orrery::search {
namespace attempts_test_cc {
namespace {

using transforms::ByFlops;
using transforms::ContextAttention;

Setting GptSetting() {
  Setting setting = MlpSetting();
  setting.step = ir::BuildModel("gpt", "layers=2,hidden=64,heads=8,seq=64,vocab=64,flash=1", 8);
  EXPECT_TRUE(transforms::MakeTrainingStep(setting.step, {.optimizer = "sgd"}).ok());
  setting.batch_size = 8;
  return setting;
}

Run Best(const Setting& setting, const ParallelPlan& plan) {
  PlanPlayer player(setting, plan);
  EXPECT_TRUE(player.Prepare().ok());
  absl::StatusOr<Run> run = BestRun(player);
  EXPECT_TRUE(run.ok()) << run.status();
  return *std::move(run);
}

// Step times of these ways, of those that the plan can be sharded by.
std::vector<Duration> Times(const Setting& setting, const ParallelPlan& plan,
                            const std::vector<Way>& ways) {
  PlanPlayer player(setting, plan);
  EXPECT_TRUE(player.Prepare().ok());
  std::vector<Duration> times;
  for (const Way& way : ways) {
    const auto run = player.Play(way);
    if (run.ok()) times.push_back(run->report.step_time);
    EXPECT_TRUE(run.ok() || AsInfeasible(run.status()).has_value()) << run.status();
  }
  EXPECT_FALSE(times.empty());
  return times;
}

TEST(BestRun, IsTheFasterOfCostAndPattern) {
  const Setting setting = GptSetting();
  for (const ParallelPlan& plan : {ByFlops({.hp = 2}), ByFlops({.dp = 2, .hp = 4}),
                                   ByFlops({.hp = 2, .pp = 2, .microbatches = 4})}) {
    SCOPED_TRACE(ToString(plan));
    EXPECT_EQ(Best(setting, plan).report.step_time,
              std::ranges::min(Times(setting, plan, {{}, {.by_cost = false}})));
  }
}

TEST(BestRun, IsTheFastestOfAllAttentions) {
  const Setting setting = GptSetting();
  const ParallelPlan plan = ByFlops({.cp = 4});
  std::vector<Way> ways;
  for (const ContextAttention attention : {ContextAttention::kAuto, ContextAttention::kAllToAll,
                                           ContextAttention::kAllGather, ContextAttention::kRing}) {
    ways.push_back({.attention = attention});
  }
  EXPECT_EQ(Best(setting, plan).report.step_time, std::ranges::min(Times(setting, plan, ways)));
}

// A plan that leaves nothing open is played as it is.
TEST(BestRun, OfOneWayIsThatWay) {
  const Setting setting = GptSetting();
  ParallelPlan ring = ByFlops({.cp = 4});
  ring.context_attention = ContextAttention::kRing;
  EXPECT_EQ(Best(setting, ring).report.step_time,
            Times(setting, ring, {{.attention = ContextAttention::kRing}})[0]);
  const ParallelPlan data = ByFlops({.dp = 4});
  EXPECT_EQ(Best(setting, data).report.step_time, Times(setting, data, {{}})[0]);
  ParallelPlan megatron = ByFlops({.hp = 4});
  megatron.sharding = transforms::ShardingMethod::kMegatron;
  EXPECT_EQ(Best(setting, megatron).report.step_time,
            Times(setting, megatron, {{.by_cost = false}})[0]);
}

// Where no choice takes less, lower limits ask nothing new.
TEST(BestRun, ChoosesTheLeastOfMemoryOnce) {
  Setting setting = GptSetting();
  setting.lowering.memory_limit = Bytes(1);
  const ParallelPlan plan = ByFlops({.hp = 4});
  PlanPlayer player(setting, plan);
  ASSERT_TRUE(player.Prepare().ok());
  const auto run = BestRun(player);
  ASSERT_TRUE(run.ok()) << run.status();
  EXPECT_FALSE(run->report.fits);
  EXPECT_GE(player.shardings().found(), 2);
}

// A budget that ends early leaves the best until then, and says so.
TEST(BestRun, EndsWithItsBudget) {
  const Setting setting = GptSetting();
  const ParallelPlan plan = ByFlops({.cp = 4});
  PlayBudget little{.left = 1}, nothing{.left = 0}, much;
  PlanPlayer hurried(setting, plan, little), idle(setting, plan, nothing),
      patient(setting, plan, much);
  for (PlanPlayer* player : {&hurried, &idle, &patient}) ASSERT_TRUE(player->Prepare().ok());
  const auto first = BestRun(hurried), best = BestRun(patient);
  ASSERT_TRUE(first.ok() && best.ok());
  EXPECT_EQ(first->report.step_time, Times(setting, plan, {{}})[0]);
  EXPECT_FALSE(first->all_ways);
  EXPECT_TRUE(best->all_ways);
  EXPECT_GT(patient.work(), 2 * hurried.work());
  EXPECT_EQ(hurried.work(), 1 - little.left);
  EXPECT_TRUE(absl::IsResourceExhausted(BestRun(idle).status()));
}

// What fits is taken, whatever else is faster; the fastest of all is among what is tried.
TEST(BestRun, RatherFitsThanIsFast) {
  Setting setting = GptSetting();
  const ParallelPlan plan = ByFlops({.hp = 4, .pp = 2, .microbatches = 4});
  const auto unbounded = Best(setting, plan);
  EXPECT_TRUE(unbounded.report.fits);
  const int64_t peak = unbounded.report.peak_memory.count();
  for (const int64_t percent : {99, 90, 75, 50, 10}) {
    setting.lowering.memory_limit = Bytes(peak * percent / 100);
    const auto bounded = Best(setting, plan);
    EXPECT_EQ(bounded.report.fits, bounded.report.peak_memory <= setting.lowering.memory_limit)
        << percent;
  }
  setting.lowering.memory_limit = Bytes(peak);
  const auto same = Best(setting, plan);
  EXPECT_TRUE(same.report.fits);
  EXPECT_LE(same.report.step_time, unbounded.report.step_time);
}

TEST(BestRun, OfWhatCannotBeSpreadIsInfeasible) {
  const Setting setting = MlpSetting();  // 48 samples
  const ParallelPlan plan = ByFlops({.dp = 5});
  PlanPlayer player(setting, plan);
  ASSERT_TRUE(player.Prepare().ok());
  const absl::Status status = BestRun(player).status();
  EXPECT_TRUE(AsInfeasible(status).has_value()) << status;
}

}  // namespace
}  // namespace attempts_test_cc
}  // namespace orrery::search
