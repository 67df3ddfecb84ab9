#include "search/bounds/likely_time.h"

#include <gtest/gtest.h>

#include "ir/models/model_test_util.h"
#include "search/settings/setting_test_util.h"

namespace orrery::search {
namespace likely_time_test_cc {
namespace {

constexpr double kWidth = 64, kPositions = 16 * 32;  // of all samples

Setting GptSetting() {
  Setting setting = MlpSetting("dgx-a100:4");
  setting.batch_size = 16;
  setting.step = ir::BuildModel(
      "gpt", "layers=6,hidden=64,heads=4,seq=32,vocab=256,flash=1,tied_embeddings=0", 16);
  EXPECT_TRUE(transforms::MakeTrainingStep(setting.step, {.optimizer = "adam"}).ok());
  return setting;
}

// Megatron's layer: two all-reduces of what it hands on in forward, and two in backward.
TEST(TrafficOf, IsFourReductionsALayer) {
  const LikelyTraffic traffic = TrafficOf(GptSetting().step);
  const double handed_on = kPositions * kWidth * 4;  // bytes
  EXPECT_EQ(traffic.hp_count, 6 * 4 + 1);            // products of the loss are one pair
  EXPECT_EQ(traffic.hp_bytes, (6 * 4 + 1) * handed_on);
  EXPECT_EQ(traffic.cp_count, 6 * 3);
  EXPECT_EQ(traffic.cp_bytes, 6 * 3 * 2 * handed_on);
}

TEST(LikelyTime, GrowsWithWhatRanksTellEachOther) {
  const Setting setting = GptSetting();
  LikelyTime likely(setting);
  const auto seconds = [&](const ParallelPlan& plan) {
    return likely.SecondsOf(plan, Duration::FromSeconds(1e-3));
  };
  const double alone = seconds({});
  EXPECT_DOUBLE_EQ(alone, 1e-3);
  EXPECT_GT(seconds({.hp = 2}), alone);
  EXPECT_GT(seconds({.dp = 2}), alone);
  EXPECT_GT(seconds({.cp = 2}), 1.25 * alone);
  // Within a node less than beyond it, whatever the order of the axes.
  const ParallelPlan near = {.dp = 4, .hp = 8}, far = {.dp = 8, .hp = 4, .order = "dp,hp,pp"};
  EXPECT_LT(seconds(near), seconds(far));
  EXPECT_GT(seconds({.hp = 2, .microbatches = 8}), seconds({.hp = 2}));
  const auto full = transforms::ParseRecomputePolicy("full").value();
  EXPECT_GT(seconds({.hp = 2, .recompute = full}), seconds({.hp = 2}));
}

// What ZeRO's third stage gathers goes on beside kernels: a step takes the longer of the two, and
// what is reduced in the end.
TEST(LikelyTime, HidesWhatZeroGathers) {
  const Setting setting = GptSetting();
  LikelyTime likely(setting);
  const auto with_zero = [&](double least_s) {
    const ParallelPlan plan = {.dp = 2, .microbatches = 8, .zero = 3};
    return likely.SecondsOf(plan, Duration::FromSeconds(least_s));
  };
  const auto without = [&](double least_s) {
    return likely.SecondsOf({.dp = 2, .microbatches = 8}, Duration::FromSeconds(least_s));
  };
  EXPECT_DOUBLE_EQ(with_zero(100), without(100));
  const double reduced_s = 2 * (without(1) - 1);
  EXPECT_GT(with_zero(1e-9), without(1e-9));
  EXPECT_NEAR(with_zero(1e-9), 8.5 * reduced_s, 1e-9);
}

// Six layers are no whole number a stage for four.
TEST(LikelyTime, GrowsWhereStagesAreUneven) {
  const Setting setting = GptSetting();
  LikelyTime likely(setting);
  const auto seconds = [&](const ParallelPlan& plan) {
    return likely.SecondsOf(plan, Duration::FromSeconds(1e-3));
  };
  EXPECT_DOUBLE_EQ(seconds({.pp = 3, .microbatches = 6}), 1e-3);
  EXPECT_DOUBLE_EQ(seconds({.pp = 4, .microbatches = 8}), 2e-3 / 1.5);
  // Of two chunks, also where nobody says so: half a bubble, which the bound has not.
  for (const int64_t chunks : {0, 2}) {
    EXPECT_DOUBLE_EQ(
        seconds({.pp = 3, .microbatches = 6, .schedule = "interleaved", .chunks = chunks}),
        1e-3 * (1 + 2 / 12.0));
  }
  EXPECT_DOUBLE_EQ(seconds({.pp = 3, .microbatches = 6, .schedule = "zbv"}), 1e-3);
  EXPECT_DOUBLE_EQ(seconds({.pp = 6, .microbatches = 6, .schedule = "interleaved"}),
                   1e-3 * (1 + 5 / 12.0) * 2);
}

}  // namespace
}  // namespace likely_time_test_cc
}  // namespace orrery::search
