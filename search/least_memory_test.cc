#include "search/bounds/least_memory.h"

#include <gtest/gtest.h>

#include "cluster/cluster_file.h"
#include "search/evaluate.h"
#include "search/settings/setting_test_util.h"
#include "support/sanitized_test_util.h"
#include "transforms/plan/plan_text.h"

namespace orrery::search {
namespace least_memory_test_cc {
namespace {

// Four weights of 64 x 64, and the moments of each.
constexpr int64_t kWeights = 4 * 64 * 64 * 4;

TEST(LeastMemory, IsWeightsAndTheirStateAsTheyAreSpread) {
  const Setting setting = MlpSetting();
  const auto least = [&](const ParallelPlan& plan) { return LeastMemory(setting, plan).count(); };
  EXPECT_EQ(least({}), 3 * kWeights);
  EXPECT_EQ(least({.dp = 4}), 3 * kWeights);
  EXPECT_EQ(least({.hp = 2, .pp = 2}), 3 * kWeights / 4);
  EXPECT_EQ(least({.dp = 4, .zero = 1}), kWeights + 2 * kWeights / 4);
  EXPECT_EQ(least({.dp = 4, .zero = 3}), 3 * kWeights / 4);
  EXPECT_EQ(least({.dp = 4, .zero = 3, .zero_group = 2}), 3 * kWeights / 2);
  ParallelPlan offloads = {};
  offloads.offload.optimizer = true;
  EXPECT_EQ(least(offloads), kWeights);
  EXPECT_EQ(LeastMemory(MlpSetting("uniform:8@200Gbps", "sgd"), {}).count(), kWeights);
}

TEST(WeightSums, AreOfEachSettingItsOwn) {
  const Setting with_state = MlpSetting(), without = MlpSetting("uniform:8@200Gbps", "sgd");
  WeightSums sums;
  for (int time = 0; time < 2; ++time) {
    EXPECT_EQ(sums.Of(with_state).states, SumWeights(with_state).states);
    EXPECT_EQ(sums.Of(without).states, 0);
    EXPECT_GT(sums.Of(without).parameters, 0);
  }
}

// A bound: what a run needs is never less.
TEST(LeastMemory, IsNoMoreThanWhatARunNeeds) {
  for (const char* optimizer : CasesToWalk<const char*>({"adam", "sgd"})) {
    Setting setting = MlpSetting("uniform:8@200Gbps", optimizer);
    setting.lowering.memory_limit = Bytes(0);
    int played = 0;
    for (const int64_t dp : {1, 2, 4}) {
      for (const int64_t hp : {1, 2, 4}) {
        for (const int64_t pp : {1, 2, 4}) {
          for (const int64_t zero : {0, 1, 2, 3}) {
            const ParallelPlan plan = {
                .dp = dp, .hp = hp, .pp = pp, .microbatches = 2, .zero = zero};
            if (plan.ranks() > 8) continue;
            const auto run = Play(setting, plan);
            if (!run.ok()) continue;
            ++played;
            EXPECT_LE(LeastMemory(setting, plan), run->report.peak_memory)
                << ToString(plan) << " " << optimizer;
          }
        }
      }
    }
    EXPECT_GT(played, 40);
  }
}

TEST(MemoryLimit, IsOfTheSettingOrTheDevice) {
  Setting setting = MlpSetting("uniform:8@200Gbps,device=a100-80gb");
  EXPECT_EQ(MemoryLimit(setting, {}), Bytes(0));
  setting.lowering.device_memory = true;
  EXPECT_EQ(MemoryLimit(setting, {}), setting.cluster.device.memory);
  setting.lowering.memory_limit = Bytes(7);
  EXPECT_EQ(MemoryLimit(setting, {}), Bytes(7));  // the smaller of both
  setting.lowering.device_memory = false;
  EXPECT_EQ(MemoryLimit(setting, {}), Bytes(7));
}

// Of unlike devices the one that has most, among those that have ranks: an A100 of 40 GB first.
TEST(MemoryLimit, IsOfTheDevicesThatAreUsed) {
  Setting setting = MlpSetting();
  setting.cluster = cluster::ParseClusterText(
                        "devices { kind: \"a100-40gb\" count: 2 }\n"
                        "devices { kind: \"h100-80gb\" count: 2 }\n"
                        "topology { kind: \"switch\" port { rate: \"50GB/s\" } }\n",
                        cluster::ClusterFormat::kText, "unlike.textproto")
                        .value();
  setting.lowering.device_memory = true;
  EXPECT_EQ(MemoryLimit(setting, {.dp = 2}), setting.cluster.kind(0).memory);
  EXPECT_EQ(MemoryLimit(setting, {.dp = 4}), setting.cluster.kind(1).memory);
  EXPECT_LT(setting.cluster.kind(0).memory, setting.cluster.kind(1).memory);
}

TEST(CannotFit, ComparesTheTwo) {
  Setting setting = MlpSetting();
  setting.lowering.device_memory = false;
  setting.lowering.memory_limit = Bytes(3 * kWeights - 1);
  EXPECT_TRUE(CannotFit(setting, {}));
  EXPECT_FALSE(CannotFit(setting, {.hp = 2}));
  setting.lowering.memory_limit = Bytes(3 * kWeights);
  EXPECT_FALSE(CannotFit(setting, {}));
  setting.lowering.memory_limit = Bytes(0);
  EXPECT_FALSE(CannotFit(setting, {}));
}

// Of what cannot fit a search says so without a run; what it says is true of a run.
TEST(Evaluate, DoesNotPlayWhatCannotFit) {
  Setting setting = MlpSetting();
  setting.lowering.memory_limit = Bytes(kWeights);
  const Result result = Evaluate(setting, {.dp = 2}).value();
  EXPECT_FALSE(result.ran);
  EXPECT_FALSE(result.feasible());
  ASSERT_TRUE(result.infeasible.has_value());
  EXPECT_EQ(result.infeasible->reason, InfeasibleReason::kMemory);
  EXPECT_EQ(result.infeasible->detail,
            "parameters and optimizer state alone need 192 KiB a rank at least; the limit is 64.0 "
            "KiB");
  EXPECT_FALSE(Play(setting, {.dp = 2}).value().report.fits);
}

}  // namespace
}  // namespace least_memory_test_cc
}  // namespace orrery::search
