#ifndef ORRERY_TOOLS_SEARCHES_PLAN_VIEWS_H_
#define ORRERY_TOOLS_SEARCHES_PLAN_VIEWS_H_

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "support/units.h"
#include "tools/reports/plot_files.h"
#include "tools/reports/view.h"

// What a search for a plan came to, as pictures and tables.

namespace orrery::tools {

/// The best plan that was known at a moment.
struct Milestone {
  double seconds = 0;  // since the search began
  int64_t played = 0;  // plans until then
  Duration step_time;
};

/// How a search for a plan went.
struct PlanCourse {
  std::string method;
  std::vector<Milestone> milestones = {};  // each better than the one before
  int64_t played = 0;                      // plans, in all
  std::optional<Duration> expert = {};     // the step of the expert's plan, if there is one
  /// "best", "--dp 4 …": what else there is to tell, a line each.
  std::vector<std::pair<std::string, std::string>> facts = {};
};

/// What --plot of `plan` draws.
std::span<const PlotView> PlanPlotViews();

/// What its report shows: the facts, the course as a table and as a chart.
std::vector<Section> PlanViews(const PlanCourse& course);

}  // namespace orrery::tools

#endif  // ORRERY_TOOLS_SEARCHES_PLAN_VIEWS_H_
