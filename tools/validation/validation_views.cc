#include "tools/validation/validation_views.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"

namespace orrery::tools {
namespace validation_views_cc {
namespace {

bool HasTime(const PredictedStep& row) { return row.seconds > 0 && row.step.seconds > 0; }

Series& SeriesOf(const std::string& name, std::vector<Series>& all) {
  const auto found = std::ranges::find(all, name, &Series::name);
  return found != all.end() ? *found : all.emplace_back(Series{.name = name});
}

// On the line what was predicted was measured.
ChartView StepsChart(const std::vector<PredictedStep>& steps) {
  ChartView chart{.title = "Step times",
                  .style = ChartStyle::kPoints,
                  .x = {"measured", "s", true},
                  .y = {"predicted", "s", true},
                  .panels = {Panel()},
                  .name = "times"};
  std::vector<Series>& all = chart.panels.front().series;
  double least = 0, most = 0;
  for (const PredictedStep& row : steps) {
    if (!HasTime(row)) continue;
    Series& series = SeriesOf(row.step.source, all);
    series.points.emplace_back(row.step.seconds, row.seconds);
    series.texts.push_back(row.step.id);
    least = most == 0 ? row.step.seconds : std::min(least, row.step.seconds);
    most = std::max(most, row.step.seconds);
  }
  if (most > 0) {
    all.push_back({.name = "as measured",
                   .points = {{least, least}, {most, most}},
                   .style = ChartStyle::kLine});
  }
  return chart;
}

TableView SetsTable(const std::vector<PredictedStep>& steps) {
  TableView table{.title = "Errors by source",
                  .columns = {{"source"},
                              {"split"},
                              {"of"},
                              {"rows"},
                              {"mean error", "share"},
                              {"worst error", "share"},
                              {"bias", "share"},
                              {"Spearman"}}};
  for (const SetFigures& set : FiguresOfSets(steps)) {
    const ErrorFigures& errors = set.errors;
    table.rows.push_back({set.source, set.split, set.of, errors.count, errors.mean, errors.worst,
                          errors.bias, errors.spearman});
  }
  return table;
}

Cell Error(double predicted, double measured) {
  return predicted > 0 && measured > 0 ? Cell(predicted / measured - 1) : Cell();
}
Cell Known(double value) { return value > 0 ? Cell(value) : Cell(); }

TableView RowsTable(const std::vector<PredictedStep>& steps) {
  TableView table{.title = "Rows",
                  .columns = {{"row"},
                              {"source"},
                              {"split"},
                              {"measured", "s"},
                              {"predicted", "s"},
                              {"error", "share"},
                              {"measured memory", "bytes"},
                              {"predicted memory", "bytes"},
                              {"error of memory", "share"},
                              {"skipped"}}};
  for (const PredictedStep& row : steps) {
    table.rows.push_back({row.step.id, row.step.source, row.step.split, Known(row.step.seconds),
                          Known(row.seconds), Error(row.seconds, row.step.seconds),
                          Known(row.step.bytes), Known(row.bytes), Error(row.bytes, row.step.bytes),
                          row.skipped});
  }
  return table;
}

TableView TablesTable(const std::vector<PredictedTable>& tables) {
  TableView table{.title = "Kernels and collectives",
                  .columns = {{"source"},
                              {"split"},
                              {"table"},
                              {"points"},
                              {"median error", "share"},
                              {"mean error", "share"},
                              {"worst error", "share"},
                              {"bias", "share"}}};
  for (const PredictedTable& of : tables) {
    const TableFigures figures = FiguresOf(of);
    table.rows.push_back({of.source, of.split, of.name, figures.errors.count, figures.median,
                          figures.errors.mean, figures.errors.worst, figures.errors.bias});
  }
  return table;
}

}  // namespace
}  // namespace validation_views_cc

std::vector<Section> ValidationViews(const ValidationReport& report) {
  std::vector<Section> sections;
  if (!report.steps.empty()) {
    sections.push_back({.id = "steps",
                        .title = "Steps",
                        .views = {validation_views_cc::StepsChart(report.steps),
                                  validation_views_cc::SetsTable(report.steps)}});
    sections.push_back({.id = "rows",
                        .title = "Every row",
                        .views = {validation_views_cc::RowsTable(report.steps)}});
  }
  if (!report.tables.empty()) {
    sections.push_back({.id = "tables",
                        .title = "Kernels and collectives",
                        .views = {validation_views_cc::TablesTable(report.tables)}});
  }
  return sections;
}

}  // namespace orrery::tools
