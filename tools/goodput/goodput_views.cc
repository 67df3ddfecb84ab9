#include "tools/goodput/goodput_views.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"

namespace orrery::tools {

using simulator::goodput::BestInterval;
using simulator::goodput::Cause;
using simulator::goodput::Episode;
using simulator::goodput::kCauseCount;
using simulator::goodput::TrialResult;

namespace goodput_views_cc {
namespace {

constexpr PlotView kPlots[] = {{"lost", "where the time of a run goes"},
                               {"runs", "how many runs have which goodput"},
                               {"interval", "goodput over the interval of checkpoints"},
                               {"run", "the first run from begin to end"}};

TableView FiguresTable(const GoodputAnswer& answer) {
  TableView table{.title = "All runs", .columns = {{.name = "what"}, {.name = "is"}}};
  for (const auto& [name, text] : GoodputLines(answer)) table.rows.push_back({name, text});
  return table;
}

TableView SharesTable(const GoodputAnswer& answer) {
  TableView table{.title = "Shares",
                  .columns = {{.name = "share"},
                              {.name = "mean", .unit = "share"},
                              {.name = "+-", .unit = "share"},
                              {.name = "5 of 100 have less than", .unit = "share"},
                              {.name = "5 of 100 have more than", .unit = "share"}}};
  for (const auto& [name, share] : {std::pair("goodput", answer.summary.goodput),
                                    std::pair("effective time", answer.summary.effective)}) {
    table.rows.push_back({std::string(name), share.mean, share.ci95, share.p5, share.p95});
  }
  return table;
}

TableView LostTable(const GoodputAnswer& answer) {
  TableView table{.title = "What the time goes into",
                  .columns = {{.name = "what"},
                              {.name = "of the time", .unit = "share"},
                              {.name = "a run", .unit = "s"}}};
  const double length_s = answer.question.spec.length_s;
  table.rows.push_back({std::string("steps that last"), answer.summary.effective.mean,
                        answer.summary.effective.mean * length_s});
  for (size_t i = 0; i < kCauseCount; ++i) {
    table.rows.push_back({std::string(TextOf(static_cast<Cause>(i))), answer.summary.lost[i],
                          answer.summary.lost[i] * length_s});
  }
  return table;
}

ChartView LostChart(const GoodputAnswer& answer) {
  ChartView chart{.title = "Time that is lost",
                  .style = ChartStyle::kBars,
                  .y = {.name = "of the time", .unit = "share"},
                  .name = "lost"};
  Series series{.name = "lost"};
  for (size_t i = 0; i < kCauseCount; ++i) {
    if (answer.summary.lost[i] <= 0) continue;
    series.points.emplace_back(static_cast<double>(chart.categories.size()),
                               answer.summary.lost[i]);
    chart.categories.emplace_back(TextOf(static_cast<Cause>(i)));
  }
  chart.panels.push_back({.series = {std::move(series)}});
  return chart;
}

ChartView RunsChart(const GoodputAnswer& answer) {
  ChartView chart{.title = "Runs by goodput",
                  .style = ChartStyle::kSteps,
                  .x = {.name = "goodput", .unit = "share"},
                  .y = {.name = "runs"},
                  .name = "runs"};
  const double length_s = answer.question.spec.length_s;
  double least = 1, most = 0;
  for (const TrialResult& result : answer.results) {
    least = std::min(least, result.worth_s / length_s);
    most = std::max(most, result.worth_s / length_s);
  }
  constexpr size_t kBins = 40;
  const double width = std::max((most - least) / kBins, 1e-9);
  std::vector<double> counts(kBins + 1);
  for (const TrialResult& result : answer.results) {
    const double place = (result.worth_s / length_s - least) / width;
    ++counts[std::min(static_cast<size_t>(std::max(place, 0.0)), kBins - 1)];
  }
  Series series{.name = "runs"};
  for (size_t i = 0; i < counts.size(); ++i) {
    series.points.emplace_back(least + static_cast<double>(i) * width, counts[i]);
  }
  chart.panels.push_back({.series = {std::move(series)}});
  return chart;
}

ChartView IntervalChart(const std::vector<BestInterval>& by_interval) {
  ChartView chart{.title = "Goodput over the interval of checkpoints",
                  .style = ChartStyle::kLine,
                  .x = {.name = "between two checkpoints", .unit = "s", .log = true},
                  .y = {.name = "goodput", .unit = "share"},
                  .name = "interval"};
  Series series{.name = "goodput"};
  for (const BestInterval& point : by_interval) {
    series.points.emplace_back(point.seconds, point.goodput);
  }
  chart.panels.push_back({.series = {std::move(series)}});
  return chart;
}

TimelineView RunTimeline(const std::vector<Episode>& episodes) {
  TimelineView view{.title = "The first run", .rows = {"job"}, .name = "run"};
  const auto place_of = [](std::vector<std::string>& names, const std::string& name) {
    const auto found = std::ranges::find(names, name);
    if (found == names.end()) names.push_back(name);
    return static_cast<int32_t>(std::ranges::find(names, name) - names.begin());
  };
  for (const Episode& episode : episodes) {
    const int32_t kind = place_of(view.kinds, episode.what);
    const std::string text =
        episode.detail.empty() ? episode.what : absl::StrCat(episode.what, ": ", episode.detail);
    view.slices.push_back({.row = 0,
                           .kind = kind,
                           .start_s = episode.start_s,
                           .end_s = episode.end_s,
                           .label = static_cast<int32_t>(view.labels.size())});
    view.labels.push_back(text);
    view.end_s = episode.end_s;
  }
  return view;
}

}  // namespace
}  // namespace goodput_views_cc

std::span<const PlotView> GoodputPlotViews() { return goodput_views_cc::kPlots; }

std::vector<Section> GoodputViews(const GoodputAnswer& answer,
                                  const std::vector<BestInterval>& by_interval,
                                  const std::vector<Episode>& first_run) {
  std::vector<Section> sections = {
      {.id = "figures",
       .title = "Goodput",
       .views = {goodput_views_cc::FiguresTable(answer), goodput_views_cc::SharesTable(answer)}},
      {.id = "lost",
       .title = "Where the time goes",
       .views = {goodput_views_cc::LostTable(answer), goodput_views_cc::LostChart(answer)}},
      {.id = "runs",
       .title = "Runs beside each other",
       .views = {goodput_views_cc::RunsChart(answer)}}};
  if (!by_interval.empty()) {
    sections.push_back({.id = "interval",
                        .title = "How often to save",
                        .views = {goodput_views_cc::IntervalChart(by_interval)}});
  }
  sections.push_back(
      {.id = "run", .title = "The first run", .views = {goodput_views_cc::RunTimeline(first_run)}});
  return sections;
}

}  // namespace orrery::tools
