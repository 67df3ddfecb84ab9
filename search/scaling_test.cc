#include <gtest/gtest.h>

#include <optional>
#include <random>
#include <string>

#include "absl/strings/str_cat.h"
#include "ir/models/model_test_util.h"
#include "search/evaluate.h"
#include "support/sanitized_test_util.h"
#include "support/status.h"
#include "transforms/plan/plan_text.h"
#include "transforms/training/training_step.h"

// What twice the devices do to a step (docs/clusters.md): over random plans.

namespace orrery::search {
namespace scaling_test_cc {
namespace {

// The step time; none of a plan that is infeasible.
std::optional<Duration> StepTime(const std::string& keys, int64_t batch, const std::string& cluster,
                                 const ParallelPlan& plan) {
  Setting setting;
  const std::string model = keys.substr(0, keys.find(':'));
  setting.step = ir::BuildModel(model, keys.substr(model.size() + 1), batch);
  EXPECT_TRUE(transforms::MakeTrainingStep(setting.step, {.optimizer = "adam"}).ok());
  setting.batch_size = batch;
  setting.cluster = cluster::ParseCluster(cluster).value();
  setting.cost_model = cost_models::MakeCostModel("roofline").value();
  const absl::StatusOr<Run> run = Play(setting, plan);
  EXPECT_TRUE(run.ok() || AsInfeasible(run.status()).has_value()) << run.status();
  if (!run.ok()) return std::nullopt;
  return run->report.step_time;
}

struct Draw {
  std::string model, cluster;
  int64_t batch = 0;
  ParallelPlan plan;

  Draw(uint32_t seed, std::initializer_list<const char*> clusters) {
    std::mt19937 random(seed);
    const auto of = [&]<typename T>(std::initializer_list<T> values) {
      return *(values.begin() + random() % values.size());
    };
    model = of({"mlp:layers=8,dim=512", "mlp:layers=6,dim=2048",
                "gpt:layers=4,hidden=64,heads=4,seq=32,vocab=500"});
    cluster = of(clusters);
    batch = of({16, 32});
    plan = {.dp = of({1, 2, 4, 8}),
            .hp = of({1, 1, 2, 4}),
            .pp = of({1, 1, 2, 4}),
            .microbatches = of({1, 2, 4})};
    plan.sharding = transforms::ShardingMethod::kMegatron;
    plan.stages_by = transforms::StagesBy::kLayers;
    plan.blocking = of({0, 0, 1}) == 1;
    if (plan.pp > 1) plan.schedule = of({"gpipe", "1f1b", "zb-h1", "zbv", "interleaved"});
  }
  std::string Text() const { return absl::StrCat(model, " ", cluster, " ", ToString(plan)); }
};

// Of twice the ranks and twice the batch each does the same, and waits for more.
TEST(Scaling, TwiceTheRanksAreNoFasterBehindSwitches) {
  for (uint32_t seed = 0; seed < CasesToWalk(150u); ++seed) {
    Draw draw(seed, {"dgx-a100:2", "dgx-v100:2", "fat-tree:16@50GB/s", "dragonfly:2x2x4@25GB/s",
                     "rails:2x8@450GB/s,nic=50GB/s,oversubscription=4",
                     "nodes:2x8@450GB/s,nic=50GB/s,nics=2,host=63GB/s"});
    if (2 * draw.plan.ranks() > 16) continue;
    SCOPED_TRACE(draw.Text());
    const auto once = StepTime(draw.model, draw.batch, draw.cluster, draw.plan);
    draw.plan.dp *= 2;
    const auto twice = StepTime(draw.model, 2 * draw.batch, draw.cluster, draw.plan);
    if (!once.has_value() || !twice.has_value()) continue;
    EXPECT_GE(*twice, *once);
  }
}

// Where devices are wired to each other, more of them have more links.
TEST(Scaling, RanksThatFillASquareOfATorusHaveTwiceTheLinks) {
  ParallelPlan plan = {.dp = 2, .stages_by = transforms::StagesBy::kLayers};
  plan.sharding = transforms::ShardingMethod::kMegatron;
  const char* model = "mlp:layers=6,dim=2048";
  const auto once = StepTime(model, 16, "tpu-v4:2x2x4", plan);
  plan.dp = 4;
  EXPECT_LT(*StepTime(model, 32, "tpu-v4:2x2x4", plan), *once);
}

// Without stages that wait for a send, a reduction takes nothing from anybody.
TEST(Scaling, OverlapIsNoSlowerThanBlocking) {
  for (uint32_t seed = 0; seed < CasesToWalk(150u); ++seed) {
    Draw draw(seed, {"dgx-a100:2", "torus:4x4@50GB/s,latency=500ns", "fat-tree:16@50GB/s",
                     "rails:2x8@450GB/s,nic=50GB/s,oversubscription=4"});
    if (draw.plan.dp > 1) draw.plan.pp = 1;
    if (draw.plan.ranks() > 16) continue;
    SCOPED_TRACE(draw.Text());
    draw.plan.blocking = false;
    const auto overlap = StepTime(draw.model, draw.batch, draw.cluster, draw.plan);
    draw.plan.blocking = true;
    const auto blocking = StepTime(draw.model, draw.batch, draw.cluster, draw.plan);
    if (!overlap.has_value() || !blocking.has_value()) continue;
    EXPECT_LE(*overlap, *blocking);
  }
}

}  // namespace
}  // namespace scaling_test_cc
}  // namespace orrery::search
