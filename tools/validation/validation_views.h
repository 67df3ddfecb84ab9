#ifndef ORRERY_TOOLS_VALIDATION_VALIDATION_VIEWS_H_
#define ORRERY_TOOLS_VALIDATION_VALIDATION_VIEWS_H_

#include <vector>

#include "tools/reports/view.h"
#include "tools/validation/validation_report.h"

namespace orrery::tools {

/// Predictions beside measurements: a point a step, the errors of each source, every row, and
/// tables of kernels and collectives.
std::vector<Section> ValidationViews(const ValidationReport& report);

}  // namespace orrery::tools

#endif  // ORRERY_TOOLS_VALIDATION_VALIDATION_VIEWS_H_
