#ifndef ORRERY_TOOLS_VALIDATION_ROWS_ROW_CLUSTER_H_
#define ORRERY_TOOLS_VALIDATION_ROWS_ROW_CLUSTER_H_

#include <string>

#include "absl/status/statusor.h"
#include "tools/validation/rows/measured_steps.h"

namespace orrery::tools {

/// The cluster that a row was measured on, as --cluster spells it: the preset of its device, with
/// the NICs that the row says where they are others. FailedPrecondition says why there is none.
absl::StatusOr<std::string> ClusterOf(const MeasuredStep& step);

}  // namespace orrery::tools

#endif  // ORRERY_TOOLS_VALIDATION_ROWS_ROW_CLUSTER_H_
