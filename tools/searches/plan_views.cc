#include "tools/searches/plan_views.h"

#include <utility>

namespace orrery::tools {
namespace plan_views_cc {
namespace {

constexpr PlotView kPlots[] = {{"course", "the best step time over how many plans were played"}};

TableView FactsTable(const PlanCourse& course) {
  TableView table{.title = "The plan", .columns = {{.name = "what"}, {.name = "is"}}};
  for (const auto& [name, text] : course.facts) table.rows.push_back({name, text});
  return table;
}

TableView CourseTable(const PlanCourse& course) {
  TableView table{
      .title = "Better and better",
      .columns = {
          {.name = "plans"}, {.name = "after", .unit = "s"}, {.name = "step", .unit = "s"}}};
  for (const Milestone& one : course.milestones) {
    table.rows.push_back({one.played, one.seconds, one.step_time.seconds()});
  }
  return table;
}

// Steps down, and on to the last plan that was played.
ChartView CourseChart(const PlanCourse& course) {
  ChartView chart{.title = "The best step so far",
                  .style = ChartStyle::kLine,
                  .x = {.name = "plans played"},
                  .y = {.name = "step time", .unit = "s"},
                  .name = "course"};
  Series best{.name = course.method};
  for (const Milestone& one : course.milestones) {
    const auto at = static_cast<double>(one.played);
    if (!best.points.empty()) best.points.emplace_back(at, best.points.back().second);
    best.points.emplace_back(at, one.step_time.seconds());
  }
  const auto end = static_cast<double>(course.played);
  if (!best.points.empty()) best.points.emplace_back(end, best.points.back().second);
  Panel panel{.series = {std::move(best)}};
  if (course.expert.has_value()) {
    const double seconds = course.expert->seconds();
    panel.series.push_back({.name = "the expert's", .points = {{0.0, seconds}, {end, seconds}}});
  }
  chart.panels.push_back(std::move(panel));
  return chart;
}

}  // namespace
}  // namespace plan_views_cc

std::span<const PlotView> PlanPlotViews() { return plan_views_cc::kPlots; }

std::vector<Section> PlanViews(const PlanCourse& course) {
  return {{.id = "plan", .title = "The plan", .views = {plan_views_cc::FactsTable(course)}},
          {.id = "course",
           .title = "How it was found",
           .views = {plan_views_cc::CourseTable(course), plan_views_cc::CourseChart(course)}}};
}

}  // namespace orrery::tools
