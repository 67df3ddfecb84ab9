#include "search/unequal/unequal_steps.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <string>

#include "absl/strings/str_cat.h"
#include "ir/models/model_test_util.h"
#include "search/evaluate.h"
#include "search/settings/setting_test_util.h"
#include "support/status.h"
#include "transforms/plan/plan_text.h"
#include "transforms/stages/cost_division.h"

namespace orrery::search {
namespace unequal_steps_test_cc {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

// 6 layers.
Setting SixLayers(const std::string& cluster, bool tied = true) {
  return ModelSetting(
      "gpt",
      absl::StrCat("layers=6,hidden=256,heads=8,seq=64,vocab=512,tied_embeddings=", tied ? 1 : 0),
      48, cluster);
}

ParallelPlan Parse(const std::string& text) {
  ParallelPlan plan = transforms::ParsePlan(text).value();
  if (!plan.stage_meshes.empty()) plan.pp = std::ssize(plan.stage_meshes.stages);
  EXPECT_TRUE(transforms::CheckPlan(plan).ok()) << transforms::CheckPlan(plan);
  return plan;
}

// In the one way that such a plan leaves.
std::string OneWay(const ParallelPlan& plan) {
  return absl::StrCat(transforms::ToString(plan), " --sharding megatron",
                      plan.most_hp() > 1 ? " --sequence-parallel=0" : "");
}

Run PlayOnce(const Setting& setting, const std::string& text) {
  absl::StatusOr<Run> run = Play(setting, Parse(OneWay(Parse(text))));
  EXPECT_TRUE(run.ok()) << text << ": " << run.status();
  return *std::move(run);
}

// Devices of which the second half is so many times slower.
cluster::Cluster Mixed(int64_t slower, int32_t of_each) {
  const cluster::Cluster even =
      cluster::ParseCluster(absl::StrCat("uniform:", 2 * of_each, "@200Gbps,device=a100-80gb"))
          .value();
  cluster::Device slow = even.device;
  slow.name = "slow";
  for (FlopRate* rate : {&slow.fp32, &slow.fp16, &slow.tf32, &slow.fp8, &slow.fp4, &slow.fp64}) {
    *rate = FlopRate(rate->flops_per_second() / static_cast<double>(slower));
  }
  slow.memory_bandwidth = Bandwidth(slow.memory_bandwidth.bytes_per_second() / slower);
  cluster::Cluster mixed{.name = "mixed", .device = even.device, .topology = even.topology};
  mixed.AddDevices(even.device, of_each);
  if (slower == 1) slow.name = even.device.name;
  mixed.AddDevices(slow, of_each);
  return mixed;
}

// Stages with ranks of their own that are all alike are an ordinary plan, rank by rank.
TEST(UnequalSteps, OfEqualStagesAreTheOrdinaryOnesToThePicosecond) {
  struct Case {
    const char* cluster;
    const char* ordinary;
    const char* unequal;
  };
  const Case cases[] = {
      {"uniform:8@200Gbps", "--dp 2 --hp 2 --pp 2", "--stage-meshes 2x2,2x2"},
      {"uniform:6@200Gbps", "--dp 2 --hp 1 --pp 3", "--stage-meshes 2x1,2x1,2x1"},
      {"dgx-a100:2", "--dp 2 --hp 4 --pp 2", "--stage-meshes 2x4,2x4"},
      {"dgx-a100:2,nic=100gbe", "--dp 4 --hp 2 --pp 2", "--stage-meshes 4x2,4x2"},
      {"uniform:4@200Gbps", "--dp 2 --hp 2 --pp 1", "--stage-meshes 2x2"},
  };
  for (const bool tied : {false, true}) {
    for (const Case& one : cases) {
      Setting setting = SixLayers(one.cluster, tied);
      setting.lowering.fold = false;
      const std::string layers =
          absl::StrContains(one.ordinary, "pp 3")   ? " --layers-per-stage 2,2,2"
          : absl::StrContains(one.ordinary, "pp 2") ? " --layers-per-stage 2,4"
                                                    : "";
      for (const char* schedule : {"1f1b", "gpipe", "zb-h1"}) {
        const std::string rest = absl::StrCat(" --micro-batches 6 --schedule ", schedule, layers);
        const search::Run ordinary = PlayOnce(setting, one.ordinary + rest);
        const search::Run unequal = PlayOnce(setting, one.unequal + rest);
        EXPECT_EQ(unequal.report.step_time, ordinary.report.step_time)
            << one.ordinary << rest << " on " << one.cluster << " tied " << tied;
        EXPECT_EQ(unequal.report.peak_memory, ordinary.report.peak_memory) << one.ordinary << rest;
        EXPECT_EQ(unequal.report.bytes_sent, ordinary.report.bytes_sent) << one.ordinary << rest;
        EXPECT_EQ(unequal.report.bytes_reduced, ordinary.report.bytes_reduced);
        EXPECT_EQ(unequal.report.flops.count(), ordinary.report.flops.count());
      }
    }
  }
}

// Microbatches dealt in turn to two replicas of all stages are those that each would have.
TEST(UnequalSteps, DealtInTurnAreTheOrdinaryOnesToThePicosecond) {
  struct Case {
    const char* ordinary;
    const char* dealt;
  };
  const Case cases[] = {
      {"--dp 2 --hp 2 --pp 2 --micro-batches 3",
       "--dp 2 --hp 2 --pp 2 --micro-batches 6 --shares round-robin"},
      {"--dp 2 --hp 2 --pp 2 --micro-batches 3",
       "--dp 2 --hp 2 --pp 2 --micro-batches 6 --shares 3,3"},
      {"--dp 4 --hp 1 --pp 2 --micro-batches 1",
       "--dp 4 --hp 1 --pp 2 --micro-batches 4 --shares round-robin"},
      {"--dp 2 --hp 1 --pp 2 --micro-batches 4",
       "--stage-meshes 2x1,2x1 --micro-batches 8 --shares round-robin"},
      {"--dp 8 --hp 1 --pp 1 --micro-batches 2",
       "--dp 8 --hp 1 --pp 1 --micro-batches 16 --shares round-robin"},
  };
  for (const Case& one : cases) {
    Setting setting = SixLayers("uniform:8@200Gbps");
    setting.lowering.fold = false;
    const bool stages = !absl::StrContains(one.ordinary, "--pp 1");
    for (const char* schedule : {"1f1b", "gpipe"}) {
      const std::string rest =
          absl::StrCat(" --schedule ", schedule, stages ? " --layers-per-stage 2,4" : "");
      const search::Run ordinary = PlayOnce(setting, one.ordinary + rest);
      const search::Run dealt = PlayOnce(setting, one.dealt + rest);
      EXPECT_EQ(dealt.report.step_time, ordinary.report.step_time) << one.dealt << rest;
      EXPECT_EQ(dealt.report.peak_memory, ordinary.report.peak_memory) << one.dealt << rest;
      EXPECT_EQ(dealt.report.bytes_sent, ordinary.report.bytes_sent) << one.dealt << rest;
      EXPECT_EQ(dealt.report.flops.count(), ordinary.report.flops.count()) << one.dealt;
    }
  }
}

// A stage of one replica between stages of two sees each microbatch, and no byte crosses twice.
TEST(UnequalSteps, SendWhatCrossesOnce) {
  const Setting setting = SixLayers("uniform:8@200Gbps", /*tied=*/false);
  const search::Run run = PlayOnce(
      setting,
      absl::StrCat("--stage-meshes 2x1,1x2,1x4 --micro-batches 4 --layers-per-stage 2,2,2"));
  // Two boundaries, forward and back, of 48 samples of 64 x 256 floats.
  EXPECT_EQ(run.report.bytes_sent, Bytes(int64_t{2} * 2 * 48 * 64 * 256 * 4));
  EXPECT_EQ(run.report.rank_count, 8);
  EXPECT_EQ(run.pipelined.unequal.places[2].devices, (std::vector<int32_t>{4, 5, 6, 7}));
}

TEST(UnequalSteps, DealtToUnequalReplicasSendAsMuch) {
  const Setting setting = SixLayers("uniform:8@200Gbps", /*tied=*/false);
  const search::Run run =
      PlayOnce(setting, absl::StrCat("--stage-meshes 3x1,2x1,1x1 --micro-batches 12 --shares "
                                     "round-robin --layers-per-stage 3,2,1"));
  EXPECT_EQ(run.report.bytes_sent, Bytes(int64_t{2} * 2 * 48 * 64 * 256 * 4));
  // Each replica of the first stage has 4 of 12 microbatches: flops are those of the model.
  const search::Run ordinary =
      PlayOnce(setting, absl::StrCat("--pp 3 --micro-batches 12 --layers-per-stage "
                                     "3,2,1"));
  EXPECT_NEAR(run.report.flops.count() / ordinary.report.flops.count(), 1, 0.02);
  EXPECT_LT(run.report.step_time, ordinary.report.step_time);
}

// Three of the same devices do more than two, and never less.
TEST(UnequalSteps, FasterDevicesAreNeverSlower) {
  const char* plans[] = {
      "--stage-meshes 2x1,2x1 --micro-batches 8", "--stage-meshes 1x2,2x1 --micro-batches 8",
      "--dp 2 --pp 2 --micro-batches 8 --shares speed", "--dp 4 --micro-batches 12 --shares speed"};
  for (const char* plan : plans) {
    Duration last = Duration(0);
    for (const int64_t slower : {1, 2, 4}) {
      Setting setting = SixLayers("uniform:4@200Gbps");
      setting.cluster = Mixed(slower, 2);
      const search::Run run = PlayOnce(setting, absl::StrCat(plan));
      EXPECT_GE(run.report.step_time, last) << plan << " with devices slower by " << slower;
      last = run.report.step_time;
    }
  }
}

TEST(UnequalSteps, DealLayersBySpeed) {
  Setting setting = SixLayers("uniform:2@200Gbps");
  setting.cluster = Mixed(3, 1);
  const std::string plan = absl::StrCat("--stage-meshes 1x1,1x1 --micro-batches 8");
  const search::Run by_speed = PlayOnce(setting, plan);
  const search::Run equal = PlayOnce(setting, plan + " --stages-by layers");
  EXPECT_LE(by_speed.report.step_time, equal.report.step_time);
  ASSERT_EQ(by_speed.pipelined.layers.size(), 2u);
  EXPECT_GT(by_speed.pipelined.layers[0], by_speed.pipelined.layers[1]);
  EXPECT_THAT(equal.pipelined.layers, ElementsAre(3, 3));
}

// Prices know nothing of sends and of gradients that are reduced behind the last microbatch: which
// stage has the odd layer is played.
TEST(UnequalSteps, LeftOpenAreAboutAsFastAsAnyCut) {
  Setting setting = SixLayers("switch:8@25gbe,device=a100-80gb");
  setting.step = ir::BuildModel("gpt", "layers=5,hidden=256,heads=8,seq=128,vocab=1000", 8);
  ASSERT_TRUE(transforms::MakeTrainingStep(setting.step, {}).ok());
  setting.batch_size = 8;
  for (const char* microbatches : {"1", "2"}) {
    const std::string plan = absl::StrCat("--stage-meshes 4x1,4x1 --micro-batches ", microbatches);
    const double open = PlayOnce(setting, plan).report.step_time.seconds();
    for (const char* layers : {"2,3", "3,2", "4,1"}) {
      const search::Run given =
          PlayOnce(setting, absl::StrCat(plan, " --layers-per-stage ", layers));
      EXPECT_LE(open, transforms::kAboutAsFast * given.report.step_time.seconds()) << layers;
    }
  }
}

TEST(UnequalSteps, SharesBySpeedAddUpAndHelp) {
  Setting setting = SixLayers("uniform:2@200Gbps");
  setting.cluster = Mixed(3, 1);
  const search::Run even =
      PlayOnce(setting, absl::StrCat("--dp 2 --micro-batches 12 --shares round-robin"));
  const search::Run by_speed =
      PlayOnce(setting, absl::StrCat("--dp 2 --micro-batches 12 --shares speed"));
  EXPECT_LT(by_speed.report.step_time, even.report.step_time);
  const std::vector<int32_t>& dealt = by_speed.pipelined.unequal.replica_of.front();
  EXPECT_EQ(dealt.size(), 12u);
  EXPECT_GT(std::ranges::count(dealt, 0), std::ranges::count(dealt, 1));
}

std::string TroubleOf(const Setting& setting, const std::string& text) {
  const absl::Status status = Play(setting, Parse(text)).status();
  const auto infeasible = AsInfeasible(status);
  return infeasible.has_value() ? infeasible->detail : std::string(status.message());
}

TEST(UnequalSteps, SayWhatIsWanted) {
  const Setting setting = SixLayers("uniform:4@200Gbps");
  EXPECT_EQ(TroubleOf(setting, "--stage-meshes 2x1,2x1@4 --micro-batches 4"),
            "uniform:4@200Gbps has 4 devices; stage 1 wants device 5");
  EXPECT_THAT(TroubleOf(setting, "--stage-meshes 1x1,1x1 --micro-batches 4 --schedule interleaved"),
              HasSubstr("has several stages a rank; wanted one of one, such as 1f1b"));
  EXPECT_THAT(
      TroubleOf(setting, "--dp 4 --micro-batches 4 --shares round-robin --zero 1 --zero-group 2"),
      HasSubstr("`zero-group`: wanted none"));
  EXPECT_THAT(TroubleOf(setting, "--dp 2 --pp 2 --micro-batches 4 --shares round-robin --zero 3"),
              HasSubstr("which replicas with microbatches of their own cannot"));
  EXPECT_THAT(TroubleOf(setting, "--dp 2 --micro-batches 5 --shares round-robin"),
              HasSubstr("does not divide into 5 microbatches"));
  EXPECT_THAT(TroubleOf(setting, "--stage-meshes 1x1,1x1 --stages-by flops"),
              HasSubstr("wanted cost or layers"));
}

}  // namespace
}  // namespace unequal_steps_test_cc
}  // namespace orrery::search
