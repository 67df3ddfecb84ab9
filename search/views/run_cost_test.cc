#include "search/views/run_cost.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "search/settings/setting_test_util.h"

namespace orrery::search {
namespace run_cost_test_cc {
namespace {

Result Found() {
  Result result;
  result.plan.dp = 8;
  result.ran = result.fits = true;
  result.step_time = Duration(2'000'000'000'000);
  result.figures = {.throughput_samples_per_s = 24, .tokens_per_s = 2400, .mfu = 0.5};
  return result;
}

// 100 samples are three steps of 48, of two seconds on eight devices.
TEST(CostOfRun, IsStepsTimesTheStep) {
  Setting setting = MlpSetting();
  EXPECT_EQ(CostOfRun(setting, Found()).steps, 0);
  setting.run_samples = 100;
  setting.device_hour = 3;
  const RunCost cost = CostOfRun(setting, Found());
  EXPECT_EQ(cost.steps, 3);
  EXPECT_DOUBLE_EQ(cost.seconds, 6);
  EXPECT_DOUBLE_EQ(cost.days(), 6.0 / 86'400);
  EXPECT_DOUBLE_EQ(cost.device_hours, 48.0 / 3600);
  EXPECT_DOUBLE_EQ(cost.price, 0.04);
  setting.run_samples = 96;
  EXPECT_EQ(CostOfRun(setting, Found()).steps, 2);
  EXPECT_EQ(CostOfRun(setting, Result()).steps, 0);
}

TEST(RunText, HasARowForEachOfTheBest) {
  Setting setting = MlpSetting();
  EXPECT_EQ(RunText(setting, {Found()}, 5), "");
  setting.run_samples = 48'000'000;
  setting.tokens_a_sample = 100;
  setting.device_hour = 2;
  EXPECT_EQ(RunText(setting, {Found(), Found()}, 1),
            "\nthe whole run: 1000000 steps of 4800 tokens\n"
            "        step     MFU  tokens/s/device      days  device-hours         price\n"
            "      2.00 s   50.0%              300      23.1          4444          8889  --dp 8 "
            "--hp 1 --pp 1 --micro-batches 1 --schedule 1f1b\n");
  EXPECT_EQ(RunText(setting, {}, 1), "");
}

TEST(AmountText, HasThreeDigits) {
  EXPECT_EQ(AmountText(0.1234), "0.123");
  EXPECT_EQ(AmountText(1.234), "1.23");
  EXPECT_EQ(AmountText(12.34), "12.3");
  EXPECT_EQ(AmountText(123.4), "123");
  EXPECT_EQ(AmountText(1234567.8), "1234568");
}

}  // namespace
}  // namespace run_cost_test_cc
}  // namespace orrery::search
