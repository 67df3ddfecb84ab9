#include "tools/validation/validation_views.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <csignal>

#include "absl/strings/str_cat.h"
#include "support/paths_test_util.h"
#include "tools/terminal/interrupt.h"

namespace orrery::tools {
namespace validation_views_test_cc {
namespace {

ValidationReport SomeReport() {
  return PredictAll({{absl::StrCat(SourceDir(), "/tests/data/validation")}}, "").value();
}

TEST(ValidationViews, AreOfWhatThereIs) { EXPECT_TRUE(ValidationViews({}).empty()); }

// A point a step that has a time, and a row a step; errors are those of the report.
TEST(ValidationViews, HaveEachRow) {
  const ValidationReport report = SomeReport();
  const std::vector<Section> sections = ValidationViews(report);
  ASSERT_GE(sections.size(), 2u);
  const auto chart = std::get<ChartView>(sections[0].views[0]);
  size_t points = 0, times = 0;
  for (const Series& series : chart.panels.front().series) {
    if (!series.style.has_value()) points += series.points.size();
  }
  for (const PredictedStep& row : report.steps) {
    times += row.seconds > 0 && row.step.seconds > 0 ? 1 : 0;
  }
  EXPECT_EQ(points, times);
  EXPECT_GT(points, 40u);
  const auto sets = std::get<TableView>(sections[0].views[1]);
  const std::vector<SetFigures> figures = FiguresOfSets(report.steps);
  ASSERT_EQ(sets.rows.size(), figures.size());
  EXPECT_EQ(std::get<double>(sets.rows[0][4]), figures[0].errors.mean);
  EXPECT_EQ(std::get<TableView>(sections[1].views[0]).rows.size(), report.steps.size());
}

// What was not begun is missing, and nothing is made of it.
TEST(PredictAll, EndsWhereASignalCame) {
  {
    const StopOnSignals signals;
    std::raise(SIGINT);
    const ValidationReport report = SomeReport();
    EXPECT_TRUE(report.steps.empty());
    EXPECT_GT(report.missing, 0u);
  }
  const StopOnSignals none;
  EXPECT_EQ(SomeReport().missing, 0u);
}

}  // namespace
}  // namespace validation_views_test_cc
}  // namespace orrery::tools
