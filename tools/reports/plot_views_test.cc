#include "tools/reports/plot_views.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "support/file.h"

namespace orrery::tools {
namespace plot_views_test_cc {
namespace {

using testing::HasSubstr;
using testing::Not;

constexpr ChartStyle kStyles[] = {ChartStyle::kLine, ChartStyle::kPoints,
                                  ChartStyle::kBars, ChartStyle::kStackedBars,
                                  ChartStyle::kArea, ChartStyle::kSteps};

ChartView SomeChart(ChartStyle style, size_t panels) {
  ChartView chart{.title = "a 'title'",
                  .style = style,
                  .x = {"degree", "", style == ChartStyle::kLine},
                  .y = {"memory", "bytes"}};
  if (style == ChartStyle::kBars || style == ChartStyle::kStackedBars) {
    chart.categories = {"rank 0", "rank 1"};
  }
  for (size_t p = 0; p < panels; ++p) {
    chart.panels.push_back({.title = absl::StrCat("panel ", p),
                            .series = {{.name = "one", .points = {{1, 2e9}, {2, 3e9}}},
                                       {.name = "two", .points = {{1, 1e9}, {2, 5e8}}}}});
  }
  return chart;
}

TimelineView SomeTimeline() {
  return {.title = "steps",
          .rows = {"rank 0", "rank 1"},
          .kinds = {"forward", "never", "backward"},
          .slices = {{.row = 0, .kind = 0, .start_s = 0, .end_s = 0.25},
                     {.row = 1, .kind = 2, .start_s = 0.25, .end_s = 1}},
          .labels = {"F0"},
          .end_s = 1};
}

// gnuplot takes all of them.
TEST(PlotOf, DrawsChartsOfEachStyle) {
  for (const ChartStyle style : kStyles) {
    for (const size_t panels : {1u, 7u}) {
      const auto svg = DrawPlot(PlotOf(SomeChart(style, panels)), PlotFormat::kSvg);
      ASSERT_TRUE(svg.ok()) << svg.status();
      EXPECT_THAT(*svg, HasSubstr("a 'title'"));
      EXPECT_THAT(*svg, HasSubstr("two"));
      if (panels > 1) {
        EXPECT_THAT(*svg, HasSubstr("panel 6"));
      }
    }
  }
}

// The upper series stands on the lower one: 3 and 3.5 GB.
TEST(PlotOf, StacksWhatIsStacked) {
  const Plot plot = PlotOf(SomeChart(ChartStyle::kStackedBars, 1));
  ASSERT_EQ(plot.tables.size(), 2u);
  EXPECT_EQ(std::get<double>(plot.tables[1].rows[0][1]), 3e9 / 0x1p30);
  EXPECT_EQ(std::get<double>(plot.tables[1].rows[1][1]), 3.5e9 / 0x1p30);
  EXPECT_THAT(plot.commands, HasSubstr("memory, GiB"));
  EXPECT_LT(plot.commands.find("$data1"), plot.commands.find("$data0")) << "hides the lower one";
}

TEST(PlotOf, LeavesOutWhatALogarithmHasNot) {
  ChartView chart = SomeChart(ChartStyle::kLine, 1);
  chart.panels[0].series[0].points.emplace_back(0, 1);
  EXPECT_EQ(PlotOf(chart).tables[0].rows.size(), 2u);
}

TEST(PlotOf, SharesAreInPercent) {
  ChartView chart = SomeChart(ChartStyle::kSteps, 1);
  chart.y = {"use", "share"};
  chart.panels[0].series[0].points = {{1, 0.5}};
  const Plot plot = PlotOf(chart);
  EXPECT_EQ(std::get<double>(plot.tables[0].rows[0][1]), 50);
  EXPECT_THAT(plot.commands, HasSubstr("use, %"));
}

TEST(PlotOf, DrawsTimelines) {
  const Plot plot = PlotOf(SomeTimeline());
  EXPECT_EQ(plot.tables.size(), 2u);  // of the kinds that there are
  const auto svg = DrawPlot(plot, PlotFormat::kSvg);
  ASSERT_TRUE(svg.ok()) << svg.status();
  for (const char* text : {"steps", "rank 1", "backward"}) EXPECT_THAT(*svg, HasSubstr(text));
  EXPECT_THAT(*svg, Not(HasSubstr("never")));
}

TEST(PlotOf, DrawsNothingToo) {
  for (const Plot& plot : {PlotOf(ChartView()), PlotOf(TimelineView()),
                           PlotOf(ChartView{.title = "t", .panels = {Panel()}})}) {
    const auto svg = DrawPlot(plot, PlotFormat::kSvg);
    EXPECT_TRUE(svg.ok()) << svg.status();
  }
}

// gnuplot leaves out names that have no room beside the panel.
TEST(PlotOf, HasRoomForAllNames) {
  ChartView chart{.title = "t", .x = {"x"}, .y = {"y"}, .panels = {Panel(), Panel()}};
  TimelineView timeline{.title = "t", .rows = {"rank 0"}, .end_s = 40};
  for (int i = 0; i < 40; ++i) {
    chart.panels[0].series.push_back({.name = absl::StrCat("line", i, "."), .points = {{1, i}}});
    timeline.kinds.push_back(absl::StrCat("line", i, "."));
    timeline.slices.push_back(
        {.row = 0, .kind = i, .start_s = static_cast<double>(i), .end_s = i + 1.0});
  }
  const Plot many = PlotOf(chart);
  chart.panels.pop_back();
  for (const Plot& plot : {many, PlotOf(chart), PlotOf(timeline)}) {
    const auto svg = DrawPlot(plot, PlotFormat::kSvg);
    ASSERT_TRUE(svg.ok()) << svg.status();
    for (int i = 0; i < 40; ++i) EXPECT_THAT(*svg, HasSubstr(absl::StrCat(">line", i, ".</t")));
  }
}

}  // namespace
}  // namespace plot_views_test_cc
}  // namespace orrery::tools
