#ifndef ORRERY_TOOLS_GOODPUT_GOODPUT_VIEWS_H_
#define ORRERY_TOOLS_GOODPUT_GOODPUT_VIEWS_H_

#include <span>
#include <vector>

#include "tools/goodput/goodput_files.h"
#include "tools/reports/plot_files.h"
#include "tools/reports/view.h"

namespace orrery::tools {

/// What --plot of `goodput` draws.
std::span<const PlotView> GoodputPlotViews();

/// What its report shows: figures, where the time goes, the runs beside each other, goodput over
/// the interval of checkpoints, and the first run from its begin to its end.
std::vector<Section> GoodputViews(const GoodputAnswer& answer,
                                  const std::vector<simulator::goodput::BestInterval>& by_interval,
                                  const std::vector<simulator::goodput::Episode>& first_run);

}  // namespace orrery::tools

#endif  // ORRERY_TOOLS_GOODPUT_GOODPUT_VIEWS_H_
