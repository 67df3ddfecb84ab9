#include "search/pipedream.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "search/settings/setting_test_util.h"

namespace orrery::search {
namespace pipedream_test_cc {
namespace {

using ::testing::HasSubstr;

// Activations of 12 samples are far less than weights: where links are slow each layer is a stage.
TEST(PipeDream, PlansAPipelineWhereLinksAreSlow) {
  const PipeDreamStages stages = PlanPipeDream(MlpSetting("uniform:4@1Gbps", "sgd"), 4).value();
  EXPECT_EQ(stages.samples, 12);
  ASSERT_EQ(stages.names.size(), 4);
  ASSERT_EQ(stages.plan.stages.size(), 4);
  // Back and forth, 12 samples of 64 floats, at 125 MB/s.
  EXPECT_NEAR(stages.plan.seconds, 2 * 12 * 64 * 4 / 125e6, 1e-9);
  EXPECT_EQ(PipeDreamText(stages),
            "PipeDream's plan: 4 layers on 4 devices, minibatches of 12 samples\n\n"
            "  stage 0   layers   0 to 0      1 replica    from y0\n"
            "  stage 1   layers   1 to 1      1 replica    from y1\n"
            "  stage 2   layers   2 to 2      1 replica    from y2\n"
            "  stage 3   layers   3 to 3      1 replica    from y3\n\n"
            "  slowest stage  4.9152e-05 s a minibatch, 244.1 k samples/s\n");
}

// Nodes, and what is in them; a node has all NICs of its devices.
TEST(PipeDream, KnowsNodes) {
  const PipeDreamStages stages = PlanPipeDream(MlpSetting("dgx-a100:4"), 1).value();
  ASSERT_EQ(stages.levels.size(), 2);
  EXPECT_EQ(stages.levels[0].members, 8);
  EXPECT_EQ(stages.levels[1].members, 4);
  EXPECT_DOUBLE_EQ(stages.levels[1].bytes_per_second, 8 * 25e9);
  EXPECT_THAT(PipeDreamText(stages), HasSubstr("4 layers on 4 x 8 devices"));
}

TEST(PipeDream, WantsDevices) {
  EXPECT_THAT(PlanPipeDream(MlpSetting("uniform:1@1Gbps"), 1).status().message(),
              HasSubstr("has 1 device; wanted at least 2"));
  EXPECT_THAT(PlanPipeDream(MlpSetting("uniform:2@1Gbps"), 5).status().message(),
              HasSubstr("5 microbatches; wanted a divisor of the 48 samples"));
  EXPECT_FALSE(PlanPipeDream(MlpSetting("uniform:2@1Gbps"), 0).ok());
}

// Four layers of 64 x 64 weights with gradients: where links are fast, one stage that is
// replicated; where a device has room for less, several.
TEST(PipeDream, RespectsMemory) {
  Setting setting = MlpSetting("uniform:4@10000Gbps", "sgd");
  const auto stages = [&](int64_t limit) {
    setting.lowering.memory_limit = Bytes(limit);
    const auto planned = PlanPipeDream(setting, 4);
    return planned.ok() ? planned->plan.stages.size() : 0;
  };
  EXPECT_EQ(stages(0), 1);
  constexpr int64_t kLayer = 2 * 64 * 64 * 4;
  EXPECT_EQ(stages(1 << 30), 1);
  EXPECT_GT(stages(3 * kLayer), 1);
  EXPECT_EQ(stages(kLayer / 2), 0);
  EXPECT_THAT(PlanPipeDream(setting, 4).status().ToString(), HasSubstr("fit the memory of one"));
}

}  // namespace
}  // namespace pipedream_test_cc
}  // namespace orrery::search
