#ifndef ORRERY_TRANSFORMS_REDISTRIBUTION_TESTING_DTENSOR_COST_BY_AXIS_H_
#define ORRERY_TRANSFORMS_REDISTRIBUTION_TESTING_DTENSOR_COST_BY_AXIS_H_

#include "absl/status/statusor.h"
#include "transforms/redistribution/dtensor.h"

namespace orrery::transforms::redistribution {

/// What DTensor estimated before it priced the steps of its plan (PyTorch before #169304): the sum
/// over mesh axes, in order, of a step from the source's placement to the target's, whether or not
/// such steps lead there. Not halved when an axis starts to split. May be infinite.
absl::StatusOr<double> DtensorCostByAxis(const Problem& problem, const DtensorOptions& options);

}  // namespace orrery::transforms::redistribution

#endif  // ORRERY_TRANSFORMS_REDISTRIBUTION_TESTING_DTENSOR_COST_BY_AXIS_H_
