#ifndef ORRERY_TOOLS_VALIDATION_VALIDATION_PAGE_H_
#define ORRERY_TOOLS_VALIDATION_VALIDATION_PAGE_H_

#include <span>
#include <string>

#include "tools/plots/gnuplot.h"
#include "tools/reports/plot_files.h"
#include "tools/validation/step_errors.h"
#include "tools/validation/validation_report.h"

// The page of predicted and measured steps, docs/validation_rows.md, and its plot.

namespace orrery::tools {

/// Which rows of several errors belong together.
struct Residuals {
  std::string of;  // "Hopper", "tp > 1"
  int64_t count = 0;
  double bias = 0;  // mean error
  double mean = 0;  // of absolute errors
};

/// Of the times of those rows that were predicted and measured, by the name that `group` gives
/// each; in the order of the names. An empty name: the row is left out.
std::vector<Residuals> ResidualsBy(std::span<const PredictedStep> steps,
                                   std::string (*group)(const PredictedStep&));

/// The page in Markdown: figures of each set, pairs, tables, residuals by size, layout, device,
/// software and type, every row, and what was skipped and why. `plot`: the address of the picture,
/// empty where there is none.
std::string ValidationPage(const ValidationReport& report, const std::string& plot);

/// What can be drawn of rows: their times, and their memory.
std::span<const PlotView> ValidationPlotViews();

/// Predicted against measured step times, or peaks of memory, by `view`, coloured by set, with the
/// line where both are alike and those ten percent off.
Plot ValidationPlot(std::span<const PredictedStep> steps, size_t view = 0);

}  // namespace orrery::tools

#endif  // ORRERY_TOOLS_VALIDATION_VALIDATION_PAGE_H_
