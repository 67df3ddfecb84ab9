#include "tools/validation/step_errors.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <random>
#include <vector>

#include "tools/validation/validation_report.h"

namespace orrery::tools {
namespace step_errors_test_cc {
namespace {

MeasuredStep Step(const std::string& id, const std::string& split, double seconds, double bytes) {
  MeasuredStep step;
  step.id = id;
  step.split = split;
  step.source = "paper";
  step.seconds = seconds;
  step.bytes = bytes;
  return step;
}

TEST(ErrorFigures, OfThreePairsByHand) {
  const std::vector<Pair> pairs = {{10, 11}, {20, 18}, {40, 40}};
  const ErrorFigures figures = FiguresOf(pairs);
  EXPECT_EQ(figures.count, 3);
  EXPECT_NEAR(figures.mean, (0.1 + 0.1 + 0) / 3, 1e-12);
  EXPECT_NEAR(figures.worst, 0.1, 1e-12);
  EXPECT_NEAR(figures.bias, 0, 1e-12);
  EXPECT_NEAR(figures.spearman, 1, 1e-12);
}

// One less the sum of squared differences of ranks, 6 times, over n(n² - 1): without ties.
TEST(ErrorFigures, SpearmanIsThatOfTheRanks) {
  std::mt19937 random(7);
  for (int trial = 0; trial < 20; ++trial) {
    const int n = 2 + static_cast<int>(random() % 12);
    std::vector<int> ranks(static_cast<size_t>(n));
    for (int i = 0; i < n; ++i) ranks[static_cast<size_t>(i)] = i;
    std::shuffle(ranks.begin(), ranks.end(), random);
    std::vector<Pair> pairs;
    double squares = 0;
    for (int i = 0; i < n; ++i) {
      const int rank = ranks[static_cast<size_t>(i)];
      pairs.push_back({1.0 + i, std::exp2(rank)});
      squares += (i - rank) * (i - rank);
    }
    EXPECT_NEAR(FiguresOf(pairs).spearman, 1 - 6 * squares / (n * (n * n - 1.0)), 1e-9);
  }
}

TEST(ErrorFigures, TiesShareTheirRanks) {
  const std::vector<Pair> pairs = {{1, 5}, {1, 6}, {2, 7}};
  EXPECT_NEAR(FiguresOf(pairs).spearman, 0.866, 1e-3);
  const std::vector<Pair> alike = {{1, 5}, {1, 6}};
  EXPECT_EQ(FiguresOf(alike).spearman, 0);
}

const std::vector<PredictedStep>& Rows() {
  static const auto& kRows = *new std::vector<PredictedStep>{
      {.step = Step("a", "calibration", 2, 0), .seconds = 3, .bytes = 7},
      {.step = Step("b", "calibration", 0, 1e9), .seconds = 1, .bytes = 9e8},
      {.step = Step("c", "holdout", 4, 2e9), .seconds = 4, .bytes = 2.5e9},
      {.step = Step("d,e", "holdout", 4, 0), .skipped = "the batch is not said"}};
  return kRows;
}

TEST(StepErrors, AsCsv) {
  EXPECT_EQ(ReportCsv({.steps = Rows()}),
            "id,measured_s,predicted_s,error,skipped,measured_bytes,predicted_bytes,memory_error,"
            "source,split,base,changed,measured_ratio,predicted_ratio,measured_change_bytes,"
            "predicted_change_bytes\n"
            "a,2,3,0.5000,,,7,,paper,calibration,,,,,,\n"
            "b,,1,-0.1000,,1000000000,900000000,-0.1000,paper,calibration,,,,,,\n"
            "c,4,4,0.0000,,2000000000,2500000000,0.2500,paper,holdout,,,,,,\n"
            "\"d,e\",4,,,the batch is not said,,,,paper,holdout,,,,,,\n");
}

TEST(StepErrors, AsATable) {
  EXPECT_EQ(
      ErrorTable(Rows()),
      R"(source                               split        of       rows     mean    worst     bias  Spearman
paper                                calibration  time        1   50.00%   50.00%  +50.00%     0.000
paper                                calibration  memory      1   10.00%   10.00%  -10.00%     0.000
paper                                holdout      time        1    0.00%    0.00%   +0.00%     0.000
paper                                holdout      memory      1   25.00%   25.00%  +25.00%     0.000

skipped:
     1  the batch is not said
)");
}

TEST(StepErrors, AsJson) {
  const auto json = nlohmann::json::parse(ReportJson({.steps = Rows()}));
  EXPECT_EQ(json["sources"].size(), 4);
  EXPECT_EQ(json["sources"][1]["of"], "memory");
  EXPECT_EQ(json["rows"][3]["skipped"], "the batch is not said");
  EXPECT_TRUE(json["rows"][0]["measured_bytes"].is_null());
  EXPECT_EQ(json["skipped"]["the batch is not said"], 1);
}

}  // namespace
}  // namespace step_errors_test_cc
}  // namespace orrery::tools
