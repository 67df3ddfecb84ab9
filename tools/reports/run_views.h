#ifndef ORRERY_TOOLS_REPORTS_RUN_VIEWS_H_
#define ORRERY_TOOLS_REPORTS_RUN_VIEWS_H_

#include <cstdint>
#include <string>

#include "search/evaluate.h"
#include "simulator/report/report_details.h"
#include "tools/reports/document.h"

// What one configuration looks like.

namespace orrery::tools {

/// What was played, and what its report says.
struct PlayedPlan {
  const search::Setting& setting;
  const search::ParallelPlan& plan;
  const search::Run& run;
  const simulator::ReportDetails& details;
};

/// Its figures, and where time and memory go: when each rank runs what, the parts of the step of
/// each, memory over time and at the peak, communication by kind, the busiest links (where the
/// setting had every link), the critical path, kernels beside what the device can do, stages, and
/// what the figures rest on.
RunDocument RunViews(const PlayedPlan& played, const std::string& name);

/// What the `hp` ranks of each group split of each kind of layer, or that they split nothing; empty
/// where a group is of one.
std::string HpSplitText(const search::Run& run, int64_t hp);

}  // namespace orrery::tools

#endif  // ORRERY_TOOLS_REPORTS_RUN_VIEWS_H_
