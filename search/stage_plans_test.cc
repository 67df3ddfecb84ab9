#include "search/stage_plans.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <numeric>

#include "search/search.h"
#include "search/settings/setting_test_util.h"
#include "transforms/plan/plan_text.h"

namespace orrery::search {
namespace stage_plans_test_cc {
namespace {

using ::testing::HasSubstr;

ParallelPlan With(int64_t microbatches) {
  ParallelPlan plan;
  plan.microbatches = microbatches;
  return plan;
}

TEST(StagePlans, OfPipeDreamArePlayed) {
  const Setting setting = MlpSetting("uniform:4@1Gbps", "sgd");
  const PipeDreamStages stages = PlanPipeDream(setting, 4).value();
  const ParallelPlan plan = PlanOfStages(setting, stages, With(4));
  EXPECT_EQ(transforms::ToString(plan),
            "--dp 1 --hp 1 --pp 4 --micro-batches 4 --schedule 1f1b --layers-per-stage 1,1,1,1 "
            "--stage-meshes 1x1,1x1,1x1,1x1");
  const search::Run run = Play(setting, plan).value();
  // The slowest stage sets the pace: no step is faster than its microbatches one after another.
  EXPECT_GE(run.report.step_time.seconds(), 4 * stages.plan.seconds * 0.999);
}

TEST(StagePlans, OfPipeDreamHaveReplicasOfTheirOwn) {
  PipeDreamStages stages;
  stages.plan.stages = {{.begin = 0, .end = 3, .replicas = 3},
                        {.begin = 3, .end = 4, .replicas = 1}};
  const Setting setting = MlpSetting("uniform:4@200Gbps");
  const ParallelPlan plan = PlanOfStages(setting, stages, With(6));
  EXPECT_EQ(transforms::ToString(plan),
            "--dp 1 --hp 1 --pp 2 --micro-batches 6 --schedule 1f1b --layers-per-stage 3,1 "
            "--stage-meshes 3x1,1x1 --shares round-robin");
  const search::Run run = Play(setting, plan).value();
  EXPECT_EQ(run.report.rank_count, 4);
}

// The objective and the division are what the dynamic program promises: all devices used once, all
// layers dealt.
TEST(StagePlans, OfAlpaUseAllDevices) {
  for (const char* cluster : {"uniform:4@200Gbps", "dgx-a100:1", "uniform:6@10Gbps"}) {
    const Setting setting = MlpSetting(cluster);
    const std::vector<StagePlan> plans = AlpaPlans(setting, With(4)).value();
    for (const StagePlan& plan : plans) {
      if (plan.plan.stage_meshes.empty()) continue;
      EXPECT_EQ(plan.plan.stage_meshes.ranks(), setting.cluster.size()) << plan.source;
      const auto& layers = plan.plan.layers_per_stage;
      if (!layers.empty()) {
        EXPECT_EQ(std::accumulate(layers.begin(), layers.end(), int64_t{0}), 4);
      }
      EXPECT_GT(plan.seconds, 0);
    }
  }
}

// The optimum of the objective is no worse than that of equal submeshes.
TEST(StagePlans, TheOptimumComesFirst) {
  const Setting setting = MlpSetting("uniform:8@10Gbps");
  const std::vector<StagePlan> plans = AlpaPlans(setting, With(6)).value();
  ASSERT_EQ(plans.front().source, "optimum");
  for (const StagePlan& plan : plans) {
    if (plan.seconds == 0) continue;
    EXPECT_LE(plans.front().seconds, plan.seconds) << plan.source;
  }
}

// On models of equal layers what the planner makes by itself comes close to the best plan of equal
// stages, and what is taken is no slower.
TEST(StagePlans, AreNoSlowerThanEqualStages) {
  for (const char* cluster : {"uniform:4@1Gbps", "uniform:8@200Gbps"}) {
    const Setting setting = MlpSetting(cluster);
    const ParallelPlan base = With(4);
    std::vector<StagePlan> plans = AlpaPlans(setting, base).value();
    const std::vector<StagePlan> uniform = UniformPlans(setting, base);
    const PlayedPlans own = PlayPlans(setting, plans).value();
    const PlayedPlans equal = PlayPlans(setting, uniform).value();
    EXPECT_LE(own.results[own.best].step_time.seconds(),
              1.1 * equal.results[equal.best].step_time.seconds());
    plans.insert(plans.end(), uniform.begin(), uniform.end());
    const PlayedPlans played = PlayPlans(setting, plans).value();
    for (const StagePlan& plan : uniform) {
      const Result result = Evaluate(setting, plan.plan).value();
      if (!result.feasible()) continue;
      EXPECT_LE(played.results[played.best].step_time, result.step_time);
    }
    EXPECT_THAT(PlansText(setting, played), HasSubstr("optimum"));
  }
}

// Fast devices first, slow ones behind.
Setting UnlikeSetting() {
  return WithSlowerHalf(MlpSetting("uniform:4@200Gbps,device=a100-80gb"), 4);
}

TEST(StagePlans, OfUnlikeDevicesHaveStagesOfOneKind) {
  const Setting setting = UnlikeSetting();
  const std::vector<StagePlan> plans = AlpaPlans(setting, With(4)).value();
  EXPECT_GE(plans.size(), 2u);
  for (const StagePlan& plan : plans) {
    int64_t devices = 0;
    for (const transforms::StageMesh& mesh : plan.plan.stage_meshes.stages) {
      EXPECT_EQ(mesh.first, devices) << plan.source;
      devices += mesh.ranks();
      EXPECT_TRUE(mesh.first + mesh.ranks() <= 2 || mesh.first >= 2)
          << transforms::ToString(plan.plan);
    }
    EXPECT_EQ(devices, 4) << plan.source;
  }
}

// What an axis says of hp means nothing of submeshes without it.
TEST(StagePlans, AreOfAxesThatWantMoreRanks) {
  ParallelPlan base = With(4);
  base.sequence_parallel = transforms::SequenceParallel::kOn;
  const std::vector<StagePlan> plans = AlpaPlans(MlpSetting("uniform:4@200Gbps"), base).value();
  for (const StagePlan& plan : plans) {
    EXPECT_TRUE(transforms::CheckPlan(plan.plan).ok()) << transforms::ToString(plan.plan);
  }
}

// Stages of one replica share nothing, whatever the stage of ZeRO: such a plan is played once.
TEST(StagePlans, OfSingleReplicasHaveNoZero) {
  const Setting setting = MlpSetting("uniform:2@200Gbps");
  ParallelPlan base = With(4);
  base.zero = 3;
  bool single = false, several = false;
  const std::vector<ParallelPlan> plans = UnequalPlans(setting, base, {4}).value();
  for (const ParallelPlan& plan : plans) {
    if (plan.stage_meshes.empty()) continue;
    (plan.most_dp() == 1 ? single : several) = true;
    EXPECT_EQ(plan.zero, plan.most_dp() == 1 ? 0 : 3) << transforms::ToString(plan);
  }
  EXPECT_TRUE(single);
  EXPECT_TRUE(several);
}

// A search of unlike devices finds the division: what pruning leaves out is no better, and nothing
// of equal stages is.
TEST(StagePlans, AreSearchedOnUnlikeDevices) {
  const Setting setting = UnlikeSetting();
  std::vector<ParallelPlan> plans = UnequalPlans(setting, {}, {1, 2, 4}).value();
  EXPECT_GT(plans.size(), 4u);
  std::vector<ParallelPlan> uniform;
  for (const int64_t microbatches : {1, 2, 4}) {
    for (const StagePlan& plan : UniformPlans(setting, With(microbatches))) {
      uniform.push_back(plan.plan);
    }
  }
  const std::vector<Result> of_uniform = RunSearch(setting, uniform).value();
  const Duration best_uniform = Ranked(of_uniform).front()->step_time;
  plans.insert(plans.end(), uniform.begin(), uniform.end());
  const std::vector<Result> all = RunSearch(setting, plans).value();
  const std::vector<Result> pruned = RunSearch(setting, plans, {.top = 3}).value();
  EXPECT_EQ(Ranked(pruned).front()->plan, Ranked(all).front()->plan);
  EXPECT_EQ(Ranked(pruned).front()->step_time, Ranked(all).front()->step_time);
  EXPECT_LT(Ranked(all).front()->step_time, best_uniform);
  EXPECT_TRUE(Ranked(all).front()->plan.unequal());
}

}  // namespace
}  // namespace stage_plans_test_cc
}  // namespace orrery::search
