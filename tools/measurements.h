#ifndef ORRERY_TOOLS_MEASUREMENTS_H_
#define ORRERY_TOOLS_MEASUREMENTS_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "cost_models/measured_curves.h"

// Predicted collectives beside measured ones.

namespace orrery::tools {

/// The --cluster that a sweep was measured on, and how many devices of it took part: the first.
/// NotFound when its hw is nothing that a preset stands for.
absl::StatusOr<std::string> ClusterOf(const cost_models::MeasuredCurve& curve);

/// What the presets predict of the points of a sweep, seconds each. Errors: it has no preset.
absl::StatusOr<std::vector<double>> PredictCurve(const cost_models::MeasuredCurve& curve);

/// One line of CSV a sweep of `curves`, and a line for each point of it where `every_point`: how
/// far the presets' predictions are from what was measured, for sizes from 64 KiB to 1 GiB and for
/// all. Rows without a preset say so.
absl::StatusOr<std::string> CompareWithMeasurements(const cost_models::MeasuredCurves& curves,
                                                    bool every_point);

}  // namespace orrery::tools

#endif  // ORRERY_TOOLS_MEASUREMENTS_H_
