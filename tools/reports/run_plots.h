#ifndef ORRERY_TOOLS_REPORTS_RUN_PLOTS_H_
#define ORRERY_TOOLS_REPORTS_RUN_PLOTS_H_

#include <cstddef>
#include <span>

#include "absl/status/statusor.h"
#include "tools/plots/gnuplot.h"
#include "tools/reports/plot_files.h"
#include "tools/reports/run_views.h"

// The pictures of a run that --plot of `simulate` draws: those of its page.

namespace orrery::tools {

/// All of them, the timeline first.
std::span<const PlotView> RunPlotViews();

/// Whether one of the files needs a run with every link, in which each kernel is a task, as a page
/// has it: all but the timeline do.
bool NeedEveryLink(std::span<const PlotFile> files);

/// The one at `view`. NotFound where the run has none, as one without communication has no links.
absl::StatusOr<Plot> RunPlot(const PlayedPlan& played, size_t view);

}  // namespace orrery::tools

#endif  // ORRERY_TOOLS_REPORTS_RUN_PLOTS_H_
