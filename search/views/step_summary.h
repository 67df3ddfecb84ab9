#ifndef ORRERY_SEARCH_VIEWS_STEP_SUMMARY_H_
#define ORRERY_SEARCH_VIEWS_STEP_SUMMARY_H_

#include <string>
#include <vector>

#include "search/evaluate.h"
#include "search/views/changes.h"
#include "simulator/report/report_details.h"

// A step in ten lines: where its time goes, what it waits for, what limits it next, and which
// single change helps most.

namespace orrery::search {

/// A part of a step, in seconds.
struct NamedTime {
  std::string name;
  double seconds = 0;
};

/// What a step is made of, means over ranks: simulator::StepPartsOf, without levels of the
/// network and causes of the bubble. `details` are of the run.
std::vector<NamedTime> PartsOf(const Run& run, const simulator::ReportDetails& details);

/// What the critical path of a run is made of, the longest first; they add up to the run.
std::vector<NamedTime> PathParts(const Run& run);

/// What a step would take at least if nothing else were in its way. The longest first.
std::vector<NamedTime> LimitsOf(const Setting& setting, const Run& run);

/// As `simulate --explain` prints it: these of the run, and the changes that were tried, the first
/// of them with what would limit the step then.
std::string SummaryText(const Setting& setting, const ParallelPlan& plan, const Run& run,
                        const simulator::ReportDetails& details, const TriedChanges& tried);

}  // namespace orrery::search

#endif  // ORRERY_SEARCH_VIEWS_STEP_SUMMARY_H_
