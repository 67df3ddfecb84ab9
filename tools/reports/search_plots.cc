#include "tools/reports/search_plots.h"

#include <algorithm>
#include <array>
#include <iterator>
#include <utility>

#include "absl/strings/str_cat.h"
#include "search/pruning.h"
#include "support/printable.h"
#include "support/status.h"
#include "tools/reports/plot_views.h"
#include "tools/reports/search_views.h"

namespace orrery::tools {
namespace search_plots_cc {
namespace {

// Their places in the list.
enum : size_t { kDegreesView, kScalingView, kFrontView, kWorthView, kOutcomesView };
constexpr PlotView kViews[] = {
    {"degrees", "throughput over degrees, a panel a degree of data parallelism"},
    {"scaling",
     "throughput over devices, or over the one degree that varies, a line a search; of "
     "several searches the first choice"},
    {"front", "step time and memory of what fits, and the Pareto front"},
    {"worth", "the best with each value of each axis"},
    {"outcomes", "how many candidates there are of which kind"},
};

constexpr size_t kMostPoints = 10'000;  // of candidates beside the front

bool IsOfSeveral(size_t view) { return view == kScalingView || view == kFrontView; }

std::string NameOf(const ScalingLine& line) {
  return absl::StrCat(line.model, ", batch ", line.batch_size, ", on ", line.cluster);
}

std::pair<double, double> PointOf(const search::Result& result) {
  return {static_cast<double>(result.peak_memory.count()), result.step_time.seconds()};
}

// What a table says in a column, a bar a row.
ChartView BarsOf(const Section& section, size_t column, const std::string& name) {
  const auto& table = std::get<TableView>(section.views.front());
  ChartView chart{.title = section.title,
                  .style = ChartStyle::kBars,
                  .y = table.columns[column],
                  .panels = {{.series = {{.name = table.columns[column].name}}}},
                  .name = name};
  for (const std::vector<Cell>& row : table.rows) {
    std::string category = std::get<std::string>(row[0]);
    if (const auto* value = std::get_if<std::string>(&row[1])) {
      absl::StrAppend(&category, " ", *value);
    }
    const double* number = std::get_if<double>(&row[column]);
    const double y =
        number != nullptr ? *number : static_cast<double>(std::get<int64_t>(row[column]));
    chart.panels.front().series.front().points.emplace_back(chart.categories.size(), y);
    chart.categories.push_back(std::move(category));
  }
  return chart;
}

// Of a search that `of` names.
Section BarsSection(Section section, size_t column, const PlotView& view, const std::string& of) {
  if (section.views.empty()) return section;
  absl::StrAppend(&section.title, ": ", of);
  section.views = {BarsOf(section, column, std::string(view.name))};
  return section;
}

}  // namespace
}  // namespace search_plots_cc

std::span<const PlotView> SearchPlotViews() { return search_plots_cc::kViews; }

absl::StatusOr<std::vector<PlotFile>> ReadSearchPlots(const std::vector<std::string>& texts,
                                                      bool several) {
  const size_t usual = several ? search_plots_cc::kScalingView : search_plots_cc::kDegreesView;
  ORRERY_ASSIGN_OR_RETURN(std::vector<PlotFile> files,
                          ReadPlots(texts, search_plots_cc::kViews, usual));
  for (size_t i = 0; several && i < files.size(); ++i) {
    if (search_plots_cc::IsOfSeveral(files[i].view)) continue;
    return absl::InvalidArgumentError(absl::StrCat(
        "--plot ", Show(texts[i]), ": ", search_plots_cc::kViews[files[i].view].name,
        " is of one search; wanted scaling or front of several, or one model, batch size and "
        "cluster"));
  }
  return files;
}

void SearchPlots::Add(const search::Setting& setting, const search::SearchRows& rows) {
  if (files_.empty()) return;
  for (size_t i = 0; i < rows.size(); ++i) {
    unplayed_ += rows.IsPruned(i) || rows.IsLeft(i) ? 1 : 0;
  }
  lines_.push_back(ScalingLineOf(setting, rows));
  std::vector<const search::Result*> front = search::ParetoFront(rows.played());
  std::ranges::stable_sort(front, {}, &search::Result::peak_memory);
  Series& of_front = fronts_.emplace_back(Series{.name = "Pareto front"});
  for (const search::Result* result : front) {
    of_front.points.push_back(search_plots_cc::PointOf(*result));
  }
  const std::vector<const search::Result*> ranked = FastestFirst(rows);
  const size_t shown = std::min(ranked.size(), search_plots_cc::kMostPoints);
  Series& of_others = others_.emplace_back(
      Series{.name = shown == ranked.size()
                         ? "what fits"
                         : absl::StrCat("what fits, the fastest ", shown, " of ", ranked.size())});
  for (size_t i = 0; i < shown; ++i) {
    of_others.points.push_back(search_plots_cc::PointOf(*ranked[i]));
  }
  const std::string of = search_plots_cc::NameOf(lines_.back());
  for (const PlotFile& file : files_) {
    if (search_plots_cc::IsOfSeveral(file.view)) continue;
    const PlotView& view = search_plots_cc::kViews[file.view];
    sections_.push_back(
        file.view == search_plots_cc::kDegreesView ? DegreesSection(setting, rows)
        : file.view == search_plots_cc::kWorthView
            ? search_plots_cc::BarsSection(WorthSection(setting, rows), 4, view, of)
            : search_plots_cc::BarsSection(CountsSection(setting, rows), 1, view, of));
  }
}

ChartView SearchPlots::FrontChart() const {
  ChartView chart{.title = "Step time and memory",
                  .style = ChartStyle::kPoints,
                  .x = {"peak memory", "bytes"},
                  .y = {"step time", "s"},
                  .panels = {Panel()},
                  .name = "front"};
  std::vector<Series>& series = chart.panels.front().series;
  if (lines_.size() == 1) {
    absl::StrAppend(&chart.title, " of ", search_plots_cc::NameOf(lines_.front()));
    series = {others_.front(), fronts_.front()};
    return chart;
  }
  chart.title += ": Pareto fronts";
  series = fronts_;
  const std::vector<std::string> names = NamesOf(lines_);
  for (size_t i = 0; i < names.size(); ++i) series[i].name = names[i];
  return chart;
}

absl::Status SearchPlots::Write() const {
  const bool any =
      std::ranges::any_of(lines_, [](const ScalingLine& line) { return !line.points.empty(); });
  return WritePlots(files_, [&](size_t view) -> absl::StatusOr<Plot> {
    if (search_plots_cc::IsOfSeveral(view) && !any) {
      return absl::NotFoundError("there is nothing to draw: no candidate fits");
    }
    if (view == search_plots_cc::kScalingView) return PlotOf(ScalingChart(lines_));
    if (view == search_plots_cc::kFrontView) return PlotOf(FrontChart());
    return PictureOf(sections_, search_plots_cc::kViews[view].name);
  });
}

std::string SearchPlots::Warning() const {
  if (unplayed_ == 0) return "";
  return absl::StrCat("warning: ", files_.front().path, ": ", unplayed_,
                      " candidates are pruned or left, and not drawn; try --no-prune");
}

}  // namespace orrery::tools
