#ifndef ORRERY_TOOLS_REPORT_TEXT_H_
#define ORRERY_TOOLS_REPORT_TEXT_H_

#include "simulator/program/program.h"
#include "simulator/report/report.h"
#include "simulator/report/report_details.h"
#include "simulator/report/report_json.h"

namespace orrery::tools {

/// Prints the figures of a report to standard output, a line each; throughput and utilization only
/// where `of_model` says that a model was played. Details: what the bubble and the peak are made
/// of, what prices only assume, how far off the step time may be, and of an asynchronous schedule
/// the versions of the weights.
void PrintReportLines(const simulator::Program& program, const simulator::Report& report,
                      const simulator::ReportDetails& details,
                      const simulator::ModelFigures& figures, bool of_model);

}  // namespace orrery::tools

#endif  // ORRERY_TOOLS_REPORT_TEXT_H_
