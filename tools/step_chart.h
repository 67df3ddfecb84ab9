#ifndef ORRERY_TOOLS_STEP_CHART_H_
#define ORRERY_TOOLS_STEP_CHART_H_

#include <string>

#include "simulator/program/program.h"
#include "simulator/report/report.h"
#include "simulator/report/report_details.h"
#include "tools/terminal/terminal.h"

namespace orrery::tools {

/// Where the time of a step goes as bars of text, the longest first: kernels by kind, exposed
/// communication by kind and level, and the bubble by its causes, means over all ranks, which make
/// up the step. Empty where nothing is known of it.
std::string StepChart(const simulator::Program& program, const simulator::Report& report,
                      const simulator::ReportDetails& details, const Terminal& terminal);

}  // namespace orrery::tools

#endif  // ORRERY_TOOLS_STEP_CHART_H_
