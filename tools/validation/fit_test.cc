#include "tools/validation/fit.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <string>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "tools/validation/predict_step.h"

namespace orrery::tools {
namespace fit_test_cc {
namespace {

using testing::HasSubstr;

// Steps of NeMo on H100, as they would take by `truth`.
std::vector<MeasuredStep> RowsBy(const FittedFigures& truth) {
  std::vector<MeasuredStep> rows;
  for (const int64_t hidden : {1024, 2048, 4096, 8192}) {
    for (const int64_t seq : {2048, 8192}) {
      for (const int64_t devices : {8, 32}) {
        MeasuredStep row;
        row.id = absl::StrCat("h", hidden, "-s", seq, "-", devices);
        row.source = "synthetic_nemo";
        row.split = devices == 32 && seq == 8192 && hidden == 4096 ? "holdout" : "calibration";
        row.model = {.layers = 4, .hidden = hidden, .heads = hidden / 128, .seq = seq};
        row.device = "H100";
        row.devices = devices;
        row.tp = hidden == 8192 ? 4 : 1;
        row.global_batch = 64;
        row.micro_batch = 1;
        row.zero = 1;
        row.precision = "bf16";
        row.seconds = 1;  // to be predicted
        const PredictedStep predicted = Predict(row, "kernels", &truth);
        EXPECT_GT(predicted.seconds, 0) << predicted.skipped;
        row.seconds = predicted.seconds;
        rows.push_back(std::move(row));
      }
    }
  }
  return rows;
}

// What made the rows: slower clock, memory and attention.
FittedFigures Truth() {
  FittedFigures truth;
  truth.devices.push_back(cluster::FindDevice("h100-80gb").value());
  truth.devices[0].rates.sustained = 0.66;
  truth.devices[0].rates.half.memory = 0.70;
  truth.devices[0].rates.attention.cudnn.efficiency = 0.50;
  return truth;
}

FitReport FittedOn(int32_t threads) {
  return Fit(RowsBy(Truth()), {.cost_model = "kernels", .threads = threads}).value();
}

// On two threads, once.
const FitReport& Fitted() {
  static const FitReport& report = *new FitReport(FittedOn(2));
  return report;
}

TEST(Fit, FindsWhatMadeTheRows) {
  const FitReport& report = Fitted();
  ASSERT_EQ(report.figures.devices.size(), 1);
  const cluster::KernelRates &fitted = report.figures.devices[0].rates,
                             wanted = Truth().devices[0].rates;
  EXPECT_NEAR(fitted.sustained / wanted.sustained, 1, 0.02);
  EXPECT_NEAR(fitted.half.memory / wanted.half.memory, 1, 0.02);
  EXPECT_NEAR(fitted.attention.cudnn.efficiency / wanted.attention.cudnn.efficiency, 1, 0.02);
  EXPECT_EQ(fitted.half.efficiency, wanted.half.efficiency);
  EXPECT_THAT(fitted.source, testing::StartsWith("validate --fit on 15 rows of synthetic_nemo; "));
  // On the row that was kept back, too.
  for (size_t i = 0; i < report.after.size(); ++i) {
    EXPECT_EQ(report.fitted[i], report.after[i].step.split == "calibration");
    EXPECT_NEAR(report.after[i].seconds / report.after[i].step.seconds, 1, 0.01);
    EXPECT_GT(std::abs(report.before[i].seconds / report.before[i].step.seconds - 1), 0.03);
  }
}

// What the host takes before each microbatch, of 2 to 64.
TEST(Fit, FindsWhatTheStackWaitsFor) {
  FittedFigures truth;
  truth.stacks.emplace_back("nemo", FindStack("nemo", {}).value());
  truth.stacks[0].second.prepare_us = 900;
  const FitReport report = Fit(RowsBy(truth), {.cost_model = "kernels", .threads = 2}).value();
  ASSERT_EQ(report.figures.stacks.size(), 1);
  EXPECT_NEAR(report.figures.stacks[0].second.prepare_us, 900, 45);
}

TEST(Fit, SaysTheSameOnAnyNumberOfThreads) {
  const FitReport one = FittedOn(1);
  EXPECT_EQ(FitText(one), FitText(Fitted()));
  EXPECT_EQ(FitFiles(one), FitFiles(Fitted()));
}

TEST(Fit, TellsWhatRowsDoNotTell) {
  const std::string text = FitText(Fitted());
  EXPECT_THAT(text, HasSubstr("\nnot determined by these rows, left at their start:\n"));
  EXPECT_THAT(text, testing::ContainsRegex("synthetic_nemo +holdout, untouched +1 "));
  EXPECT_THAT(text, testing::ContainsRegex("synthetic_nemo +calibration, fitted +15 "));
}

TEST(Fit, NeedsRows) {
  std::vector<MeasuredStep> rows = RowsBy({});
  for (MeasuredStep& row : rows) row.split = "holdout";
  EXPECT_THAT(std::string(Fit(rows, {}).status().message()),
              HasSubstr("no row with split \"calibration\""));
}

}  // namespace
}  // namespace fit_test_cc
}  // namespace orrery::tools
