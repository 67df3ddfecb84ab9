#include "tools/validation/validation_page.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace orrery::tools {
namespace validation_page_test_cc {
namespace {

using testing::HasSubstr;
using testing::Not;

PredictedStep Row(const std::string& id, double measured, double predicted) {
  PredictedStep row;
  row.step.id = id;
  row.step.source = "a_set";
  row.step.split = "holdout";
  row.step.seconds = measured;
  row.seconds = predicted;
  row.features = {.device = "h100-80gb",
                  .dtype = "bf16",
                  .stack = "nemo",
                  .parameters = 8'000'000'000,
                  .devices = 16,
                  .tp = 2,
                  .dp = 8};
  return row;
}

std::vector<PredictedStep> Rows() {
  std::vector<PredictedStep> rows = {Row("one|row", 2, 2.2), Row("two", 4, 3.6),
                                     Row("three", 1, 1.3)};
  rows[2].features.parameters = 300'000'000'000;
  rows[2].features.tp = 1;
  rows[2].features.mixture = true;
  rows[2].features.device = "b200";
  rows[2].step.bytes = 10e9;
  rows[2].bytes = 9e9;
  PredictedStep skipped = Row("four", 1, 0);
  skipped.skipped = "the batch is not said";
  rows.push_back(skipped);
  return rows;
}

TEST(Residuals, ByAName) {
  const std::vector<PredictedStep> rows = Rows();
  const auto by = ResidualsBy(rows, [](const PredictedStep& row) {
    return row.features.tp > 1 ? std::string("tp > 1") : std::string();
  });
  ASSERT_EQ(by.size(), 1u);
  EXPECT_EQ(by[0].of, "tp > 1");
  EXPECT_EQ(by[0].count, 2);
  EXPECT_NEAR(by[0].bias, 0, 1e-12);
  EXPECT_NEAR(by[0].mean, 0.1, 1e-12);
}

TEST(ValidationPage, HasEveryRow) {
  const std::string page = ValidationPage({.steps = Rows()}, "plot.svg");
  for (const std::string line :
       {"![Predicted against measured step times](plot.svg)",
        "| `a_set` | holdout | time | 3 | 16.7 % | 30.0 % | +10.0 % | 1.00 |",
        "| `a_set` | holdout | memory | 1 | 10.0 % | 10.0 % | -10.0 % | 0.00 |",
        "| parameters | 1 to 10 billion | 2 | +0.0 % | 10.0 % |",
        "| parameters | over 200 billion | 1 | +30.0 % | 30.0 % |",
        "| model | mixture of experts | 1 | +30.0 % | 30.0 % |",
        "| layout | tp > 1 | 2 | +0.0 % | 10.0 % |", "| layout | dp > 1 | 3 | +10.0 % | 16.7 % |",
        "| device | Hopper, h100-80gb | 2 | +0.0 % | 10.0 % |",
        "| software | nemo | 3 | +10.0 % | 16.7 % |", "| type | bf16 | 3 | +10.0 % | 16.7 % |",
        "| `one\\|row` | holdout | 2 s | 2.2 s | +10.0 % |  |  |  |",
        "| `three` | holdout | 1 s | 1.3 s | +30.0 % | 10.0 | 9.0 | -10.0 % |",
        "| 1 | the batch is not said | `four` |"}) {
    EXPECT_THAT(page, HasSubstr("\n" + line + "\n"));
  }
  // What is not there has no part.
  EXPECT_THAT(page, Not(HasSubstr("cp > 1")));
  EXPECT_THAT(page, Not(HasSubstr("## What a change does")));
  EXPECT_THAT(page, Not(HasSubstr("## Kernels and collectives")));
  EXPECT_THAT(ValidationPage({.steps = Rows()}, ""), Not(HasSubstr("![")));
}

TEST(ValidationPage, HasPairsAndTables) {
  std::vector<PredictedStep> rows = Rows();
  rows[1].step.change = {.base = "one|row", .what = "more", .time_ratio = 1.5, .memory_bytes = 1e9};
  const PredictedTable table = {
      .source = "t", .split = "holdout", .name = "H100 bf16", .points = {{"m=1", 1, 1.2}}};
  const std::string page = ValidationPage({.steps = rows, .tables = {table}}, "");
  EXPECT_THAT(page, HasSubstr("| `two` | more | 1.500 | 1.636 | right | +1.00 | +0.00 |\n"));
  EXPECT_THAT(
      page, HasSubstr("| `t` | H100 bf16 | holdout | 1 | 20.0 % | 20.0 % | 20.0 % | +20.0 % |\n"));
}

TEST(ValidationPlot, HasEverySet) {
  std::vector<PredictedStep> rows = Rows();
  rows.push_back(Row("other", 3, 3));
  rows.back().step.source = "another 'set'";
  const Plot plot = ValidationPlot(rows);
  ASSERT_EQ(plot.tables.size(), 2u);
  EXPECT_EQ(plot.tables[0].rows.size(), 3u);
  EXPECT_EQ(std::get<double>(plot.tables[0].rows[1][1]), 3.6);
  EXPECT_THAT(plot.commands, HasSubstr("title 'another ''set'''"));
  const auto svg = DrawPlot(plot, PlotFormat::kSvg);
  ASSERT_TRUE(svg.ok()) << svg.status();
  EXPECT_THAT(*svg, HasSubstr("10 % more"));
  EXPECT_TRUE(DrawPlot(ValidationPlot({}), PlotFormat::kSvg).ok());
}

}  // namespace
}  // namespace validation_page_test_cc
}  // namespace orrery::tools
