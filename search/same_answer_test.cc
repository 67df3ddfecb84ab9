#include <gtest/gtest.h>

#include <string>

#include "absl/strings/str_cat.h"
#include "ir/models/model_test_util.h"
#include "search/drawing_test_util.h"
#include "search/evaluate.h"
#include "search/settings/setting_test_util.h"
#include "support/sanitized_test_util.h"
#include "transforms/plan/plan_test_util.h"
#include "transforms/plan/plan_text.h"

// One answer, however it is come by: with ranks folded or each by itself, and with every link and
// kernel looked at or not. Random small steps.

namespace orrery::search {
namespace same_answer_test_cc {
namespace {

Setting DrawSetting(Drawing& draw) {
  Setting setting;
  setting.batch_size = 16;
  const auto [family, keys] = draw.Of<std::pair<const char*, const char*>>(
      {{"gpt", "layers=4,hidden=64,heads=4,seq=32,vocab=256,tied_embeddings=0"},
       {"gpt", "layers=2,hidden=64,heads=4,kv_heads=2,seq=32,vocab=256,mlp=swiglu,flash=1"},
       {"mlp", "layers=8,dim=64"},
       {"resnet", "depth=18,image=32,width=8"}});
  setting.step = ir::BuildModel(family, keys, setting.batch_size);
  EXPECT_TRUE(transforms::MakeTrainingStep(setting.step, {.optimizer = "adam"}).ok());
  setting.model_name = absl::StrCat(family, ":", keys);
  setting.cluster =
      cluster::ParseCluster(
          draw.Of<const char*>({"torus:4x4@5GB/s,latency=500ns", "torus:2x8@5GB/s,latency=500ns",
                                "ring:16@5GB/s,latency=1us", "dgx-a100:2", "pcie-workstation:4",
                                "fat-tree:16@5GB/s", "dragonfly:2x2x4@5GB/s", "mesh:4x4@5GB/s",
                                "nodes:2x8@45GB/s,nic=5GB/s,nics=2,host=63GB/s"}))
          .value();
  setting.cost_model = cost_models::MakeCostModel("roofline").value();
  setting.model_flops = CountModelFlops(setting.step);
  return setting;
}

ParallelPlan DrawPlan(Drawing& draw) {
  ParallelPlan plan;
  plan.pp = draw.Of<int64_t>({1, 1, 2, 4});
  plan.hp = draw.Of<int64_t>({1, 2, 4});
  plan.dp = draw.Of<int64_t>({1, 2, 4, 8});
  plan.cp = draw.Of<int64_t>({1, 1, 1, 2, 4});
  plan.microbatches = draw.Of<int64_t>({1, 2, 2, 3, 4});
  plan.schedule = draw.Of<const char*>({"1f1b", "gpipe", "chimera", "chimera", "zb-h1"});
  plan.blocking = draw.Of({false, false, true});
  plan.sharding =
      draw.Of({transforms::ShardingMethod::kMegatron, transforms::ShardingMethod::kAuto});
  return plan;
}

TEST(Play, IsTheSameHoweverItIsComeBy) {
  int played = 0, folded = 0;
  ForEachDrawn(
      0, CasesToWalk(350u), DrawSetting, DrawPlan, [&](Setting& setting, const auto& plan) {
        const auto run = Play(setting, plan);
        if (!run.ok()) return;
        ++played;
        setting.lowering.every_link = true;
        const auto looked_at = Play(setting, plan);
        EXPECT_EQ(looked_at->report.step_time, run->report.step_time) << "with every link";
        EXPECT_EQ(looked_at->report.peak_memory, run->report.peak_memory) << "with every link";
        EXPECT_EQ(looked_at->report.fits, run->report.fits) << "with every link";
        setting.lowering.every_link = false;
        setting.lowering.fold = false;
        const auto each = Play(setting, plan);
        EXPECT_EQ(each->report.step_time, run->report.step_time) << "each rank";
        // Folded ranks run stretches, which hold what they need most from their start to their end.
        EXPECT_LE(each->report.peak_memory, run->report.peak_memory) << "each rank";
        EXPECT_GE(1.02 * static_cast<double>(each->report.peak_memory.count()),
                  static_cast<double>(run->report.peak_memory.count()))
            << "each rank";
        folded += run->program.rank_count() < each->program.rank_count() ? 1 : 0;
      });
  RecordProperty("played", played);
  EXPECT_GT(played, CasesToWalk(50));
  EXPECT_GT(folded, CasesToWalk(25));
}

// Regression: the only microbatch of a pipeline was taken for one that others follow, so that
// gradients waited for more of the backward than their own kernels, but not in a trace.
TEST(Play, IsNoSlowerByRunsWhereAPipelineHasOneMicrobatch) {
  Setting setting = MlpSetting("pcie-workstation:4");
  for (const int64_t microbatches : {2, 3, 4}) {
    const ParallelPlan plan = transforms::ByFlops(
        {.dp = 4, .pp = 2, .microbatches = microbatches, .schedule = "chimera"});
    setting.lowering.every_link = false;
    const Duration without = Play(setting, plan)->report.step_time;
    setting.lowering.every_link = true;
    EXPECT_EQ(Play(setting, plan)->report.step_time, without) << microbatches;
  }
}

// Regression: a group's collectives on two streams were one to the network, which saw no sharing.
TEST(Play, CollectivesOfOneGroupOnTwoStreamsShareLinks) {
  Setting setting = MlpSetting("uniform:16@25GB/s");
  setting.batch_size = 1;
  setting.step = ir::BuildModel(
      "gpt", "layers=2,hidden=256,heads=1,seq=256,vocab=64,tied_embeddings=0,bias=0", 1);
  ASSERT_TRUE(transforms::MakeTrainingStep(setting.step, {.optimizer = "adam"}).ok());
  int shared = 0;
  for (const int64_t cp : {2, 4, 8}) {
    const ParallelPlan plan{.cp = cp};
    setting.lowering.every_link = false;
    const auto without = Play(setting, plan);
    ASSERT_TRUE(without.ok()) << without.status();
    shared += without->program.flow_count() > 0 ? 1 : 0;
    setting.lowering.every_link = true;
    EXPECT_EQ(Play(setting, plan)->report.step_time, without->report.step_time) << cp;
  }
  EXPECT_GT(shared, 0);
}

}  // namespace
}  // namespace same_answer_test_cc
}  // namespace orrery::search
