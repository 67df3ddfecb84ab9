#include <algorithm>
#include <iterator>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "tools/reports/plot_axes.h"
#include "tools/validation/validation_page.h"

namespace orrery::tools {
namespace validation_plot_cc {
namespace {

constexpr PlotView kViews[] = {{"times", "predicted against measured step times"},
                               {"memory", "predicted against measured peaks of memory"}};

// What a view is of: 0 where a row has none.
struct Measured {
  const char *title, *unit;
  double (*measured)(const PredictedStep& row);
  double (*predicted)(const PredictedStep& row);
};
constexpr Measured kMeasured[] = {{"Step times, predicted and measured", "s",
                                   [](const PredictedStep& row) { return row.step.seconds; },
                                   [](const PredictedStep& row) { return row.seconds; }},
                                  {"Peaks of memory, predicted and measured", "GB",
                                   [](const PredictedStep& row) { return row.step.bytes / 1e9; },
                                   [](const PredictedStep& row) { return row.bytes / 1e9; }}};
static_assert(std::size(kMeasured) == std::size(kViews));

// Of different lightness, so that they are told apart in grey, too. As many as there are marks,
// less one: each set has a pair of its own.
constexpr const char* kColours[] = {"#1f77b4", "#ff7f0e", "#2ca02c", "#d62728", "#9467bd",
                                    "#8c564b", "#e377c2", "#7f7f7f", "#000000"};
constexpr int kMarks[] = {7, 5, 9, 11, 13, 6, 4, 8, 10, 12};

// The square of the plot in the picture, and the list of sets to its right.
constexpr int kSide = 540, kLeft = 95, kBottom = 75, kTop = 45, kSample = 85, kLetter = 7;

std::string Frame(size_t longest_name, Plot& plot) {
  plot.width = kLeft + kSide + kSample + kLetter * static_cast<int>(longest_name);
  plot.height = kBottom + kSide + kTop;
  const double width = plot.width, height = plot.height, top = (kBottom + kSide) / height;
  return absl::StrFormat(
      "set lmargin at screen %.4f\nset rmargin at screen %.4f\nset bmargin at screen %.4f\n"
      "set tmargin at screen %.4f\nset key at screen %.4f,%.4f left top Left reverse\n",
      kLeft / width, (kLeft + kSide) / width, kBottom / height, top, (kLeft + kSide + 12) / width,
      top);
}

}  // namespace
}  // namespace validation_plot_cc

std::span<const PlotView> ValidationPlotViews() { return validation_plot_cc::kViews; }

Plot ValidationPlot(std::span<const PredictedStep> steps, size_t view) {
  const validation_plot_cc::Measured& of = validation_plot_cc::kMeasured[view];
  Plot plot;
  PlotExtent extent;
  std::vector<std::string> sources;  // in the order in which they come
  for (const PredictedStep& row : steps) {
    if (of.measured(row) <= 0 || of.predicted(row) <= 0) continue;
    const auto found = std::ranges::find(sources, row.step.source);
    const auto i = static_cast<size_t>(found - sources.begin());
    if (found == sources.end()) {
      sources.push_back(row.step.source);
      plot.tables.push_back({.name = absl::StrCat("set", i), .rows = {}});
    }
    plot.tables[i].rows.push_back({of.measured(row), of.predicted(row)});
    extent.See(of.measured(row));
    extent.See(of.predicted(row));
  }
  size_t longest_name = 12;
  std::string sets;
  for (size_t i = 0; i < sources.size(); ++i) {
    longest_name = std::max(longest_name, sources[i].size());
    absl::StrAppend(&sets, ", \\\n  $", plot.tables[i].name, " using 1:2 with points pt ",
                    validation_plot_cc::kMarks[i % std::size(validation_plot_cc::kMarks)],
                    " ps 0.6 lc rgb '",
                    validation_plot_cc::kColours[i % std::size(validation_plot_cc::kColours)],
                    "' title ", PlotText(sources[i]));
  }
  if (!extent.any) extent = {.least = 0.1, .most = 10, .any = true};
  const Quantity measured{"measured", of.unit}, predicted{"predicted", of.unit};
  plot.commands =
      absl::StrCat(validation_plot_cc::Frame(longest_name, plot),
                   "set format xy '%g'\nset tics nomirror out\nset grid lc rgb '#cccccc'\n",
                   AxisCommands({.name = "x", .log = true}, measured, {}, extent),
                   AxisCommands({.name = "y", .log = true}, predicted, {}, extent), "set xlabel ",
                   PlotText(LabelOf(measured, {1, of.unit})), "\nset ylabel ",
                   PlotText(LabelOf(predicted, {1, of.unit})), "\nset title ", PlotText(of.title),
                   "\nplot x with lines lc rgb '#000000' title 'as measured', \\\n"
                   "  1.1 * x with lines dt 2 lc rgb '#888888' title '10 % more', \\\n"
                   "  0.9 * x with lines dt 3 lc rgb '#888888' title '10 % less'",
                   sets, "\n");
  return plot;
}

}  // namespace orrery::tools
