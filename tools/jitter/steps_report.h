#ifndef ORRERY_TOOLS_JITTER_STEPS_REPORT_H_
#define ORRERY_TOOLS_JITTER_STEPS_REPORT_H_

#include <string>

#include "search/views/disturbed_steps.h"

namespace orrery::tools {

/// What disturbs the steps, as a line: "rank normal 1 %, gc 20 ms every 30 s; slow rank 5 x 1.3".
std::string DisturbancesText(const search::StepsQuestion& question);

/// What came of them, a line each, for people.
std::string StepsText(const search::StepsQuestion& question, const search::StepsAnswer& answer);

/// The same for programs: the object `steps` of the report.
std::string StepsJson(const search::StepsQuestion& question, const search::StepsAnswer& answer);

}  // namespace orrery::tools

#endif  // ORRERY_TOOLS_JITTER_STEPS_REPORT_H_
