#include "tools/validation/nearest_steps.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <iostream>
#include <string>
#include <vector>

namespace orrery::tools {
namespace nearest_steps_test_cc {
namespace {

using testing::HasSubstr;

constexpr MeasuredResidual kRow = {
    "row", "a100-80gb", "fp16", "megatron", false, 8'000'000'000, 64, 8, 2, 4, 1, 1, 2048, 0.02};

StepFeatures FeaturesOfRow(const MeasuredResidual& row) {
  return {.device = std::string(row.device),
          .dtype = std::string(row.dtype),
          .stack = std::string(row.stack),
          .mixture = row.mixture,
          .parameters = row.parameters,
          .devices = row.devices,
          .tp = row.tp,
          .pp = row.pp,
          .dp = row.dp,
          .cp = row.cp,
          .ep = row.ep,
          .tokens = row.tokens};
}

TEST(NearestSteps, DistancesAreDoublings) {
  const StepFeatures same = FeaturesOfRow(kRow);
  EXPECT_EQ(DistanceBetween(same, kRow), 0);
  const auto changed = [&](auto change) {
    StepFeatures features = same;
    change(features);
    return DistanceBetween(features, kRow);
  };
  EXPECT_DOUBLE_EQ(changed([](auto& f) { f.parameters *= 4; }), 2);
  EXPECT_DOUBLE_EQ(changed([](auto& f) { f.parameters /= 2; }), 1);
  EXPECT_DOUBLE_EQ(changed([](auto& f) { f.devices = 256; }), 1);
  EXPECT_DOUBLE_EQ(changed([](auto& f) { f.tokens = 4096; }), 0.5);
  EXPECT_DOUBLE_EQ(changed([](auto& f) { f.tp = 2; }), 1);
  EXPECT_DOUBLE_EQ(changed([](auto& f) { f.pp = 4, f.cp = 2, f.ep = 2; }), 1.5);
  EXPECT_DOUBLE_EQ(changed([](auto& f) { f.dtype = "bf16"; }), 1);
  EXPECT_DOUBLE_EQ(changed([](auto& f) { f.stack = "nemo"; }), 1);
  EXPECT_EQ(changed([](auto& f) { f.device = "a100-40gb-pcie"; }), 0);
  EXPECT_TRUE(std::isinf(changed([](auto& f) { f.device = "h100-80gb"; })));
  EXPECT_TRUE(std::isinf(changed([](auto& f) { f.mixture = true; })));
}

// Rows of these errors, a doubling of the parameters from one to the next.
std::vector<MeasuredResidual> RowsOf(const std::vector<double>& errors) {
  std::vector<MeasuredResidual> rows;
  for (const double error : errors) {
    rows.push_back(kRow);
    rows.back().error = error;
    rows.back().parameters <<= rows.size() - 1;
  }
  return rows;
}

TEST(NearestSteps, BarIsWhatMostOfThemKeepTo) {
  const StepFeatures features = FeaturesOfRow(kRow);
  // Beyond the reach of 4 is the sixth.
  const auto bar = ErrorBarOf(features, 10, RowsOf({0.01, -0.04, 0.03, 0.20, -0.02, 0.9}));
  EXPECT_EQ(bar.none, "");
  EXPECT_EQ(bar.nearest.size(), 5u);
  EXPECT_DOUBLE_EQ(bar.spread, 0.04);  // four of five
  EXPECT_DOUBLE_EQ(bar.low_s, 9.6);
  EXPECT_DOUBLE_EQ(bar.high_s, 10.4);
  EXPECT_EQ(bar.nearest[1].distance, 1);
  EXPECT_FALSE(bar.other_software);
  StepFeatures other = features;
  other.stack = "ideal";
  EXPECT_TRUE(
      ErrorBarOf(other, 10, RowsOf({0.01, 0.04, 0.03, 0.2, 0.02}), {.reach = 9}).other_software);
  // No step takes less than nothing.
  EXPECT_EQ(ErrorBarOf(features, 10, RowsOf({3, 3, 3, 3, 3})).low_s, 0);
}

TEST(NearestSteps, SaysWhereNothingIsNear) {
  const StepFeatures features = FeaturesOfRow(kRow);
  const std::vector<MeasuredResidual> few = RowsOf({0.1, 0.1, 0.1});
  EXPECT_EQ(ErrorBarOf(features, 1, few).none,
            "but 3 of a dense model on Ampere, the nearest, row, is 0.0 doublings away");
  StepFeatures far = features;
  far.parameters /= 1024;
  EXPECT_EQ(ErrorBarOf(far, 1, few).none,
            "of a dense model on Ampere, the nearest, row, is 10.0 doublings away");
  far.device = "tpu-v4";
  far.mixture = true;
  const auto bar = ErrorBarOf(far, 1, few);
  EXPECT_EQ(bar.none, "no mixture of experts on tpu-v4 was");
  EXPECT_TRUE(bar.nearest.empty());
}

// Each measured row, predicted as if it had not been measured: the others say how far off it may
// be, and two thirds of them are right.
TEST(NearestSteps, BarsCoverWhatTheySay) {
  int covered = 0, bars = 0;
  for (const MeasuredResidual& row : AllMeasuredResiduals()) {
    std::vector<MeasuredResidual> others;
    for (const MeasuredResidual& other : AllMeasuredResiduals()) {
      if (&other != &row) others.push_back(other);
    }
    const auto bar = ErrorBarOf(FeaturesOfRow(row), 1, others);
    if (!bar.none.empty()) continue;
    ++bars;
    covered += std::abs(row.error) <= bar.spread ? 1 : 0;
  }
  std::cout << covered << " of " << bars << " bars cover their row\n";
  EXPECT_GT(bars, 500);
  EXPECT_GE(covered, 0.5 * bars);
  EXPECT_LE(covered, 0.85 * bars);
}

TEST(NearestSteps, ResidualsAreWrittenAsTheyAreRead) {
  PredictedStep row;
  row.step.id = "a \"b\"";
  row.step.seconds = 2;
  row.seconds = 2.1;
  row.features = FeaturesOfRow(kRow);
  PredictedStep skipped;
  skipped.skipped = "no time";
  EXPECT_THAT(ResidualsText(std::vector<PredictedStep>{row, skipped}),
              testing::EndsWith("error of the predicted step time.\n"
                                "{\"a \\\"b\\\"\", \"a100-80gb\", \"fp16\", \"megatron\", false, "
                                "8000000000, 64, 8, 2, 4, 1, 1, 2048, 0.0500},\n"));
  EXPECT_THAT(ResidualsText({}), HasSubstr("scripts/validation_page"));
}

}  // namespace
}  // namespace nearest_steps_test_cc
}  // namespace orrery::tools
