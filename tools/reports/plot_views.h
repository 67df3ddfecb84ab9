#ifndef ORRERY_TOOLS_REPORTS_PLOT_VIEWS_H_
#define ORRERY_TOOLS_REPORTS_PLOT_VIEWS_H_

#include "tools/plots/gnuplot.h"
#include "tools/reports/view.h"

// The views of a report as figures of a paper, which gnuplot draws.

namespace orrery::tools {

/// A chart as a figure: panels side by side, with the same scales, at most five a row. Points that
/// a logarithmic axis cannot show are left out.
Plot PlotOf(const ChartView& chart);

/// A timeline as a figure: a row each, a colour a kind.
Plot PlotOf(const TimelineView& timeline);

}  // namespace orrery::tools

#endif  // ORRERY_TOOLS_REPORTS_PLOT_VIEWS_H_
