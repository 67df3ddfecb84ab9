#ifndef ORRERY_TOOLS_VALIDATION_NEAREST_STEPS_H_
#define ORRERY_TOOLS_VALIDATION_NEAREST_STEPS_H_

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "simulator/report/report_details.h"
#include "tools/validation/step_errors.h"
#include "tools/validation/step_features.h"

// How far off a prediction may be: as far as those of the measured steps that are most like it.
// docs/validation.md says how near is measured, and how often the bars hold.

namespace orrery::tools {

/// A measured step, and how far off its prediction is. So many fields: those of StepFeatures, and
/// which row it is.
struct MeasuredResidual {
  absl::string_view id, device, dtype, stack;
  bool mixture;
  int64_t parameters, devices, tp, pp, dp, cp, ep, tokens;
  double error;  // predicted over measured, less 1
};

/// Those that the program was built with: tools/validation/measured_residuals.inc, which
/// scripts/validation_page makes of the rows of the repository.
std::span<const MeasuredResidual> AllMeasuredResiduals();

/// That file, of rows with a time that was predicted and measured.
std::string ResidualsText(std::span<const PredictedStep> steps);

/// Doublings between two steps: |log2| of the ratio of their parameters, half of those of devices,
/// tokens a sample, and the degrees tp, pp, cp and ep, and 1 each for another type and other
/// software. Infinite between devices of other architectures, and between a mixture and a dense
/// model: what is known of one says nothing of the other.
double DistanceBetween(const StepFeatures& features, const MeasuredResidual& row);

/// What decides a bar.
struct NearLimits {
  double reach = 4;     // the largest distance of a step that is near
  size_t most = 15;     // of the nearest
  size_t least = 5;     // fewer are no bar
  double share = 0.68;  // of them that were no further off than the bar
};

/// The bar of a step that takes so many seconds.
simulator::ErrorBar ErrorBarOf(const StepFeatures& features, double seconds,
                               std::span<const MeasuredResidual> rows,
                               const NearLimits& limits = {});

}  // namespace orrery::tools

#endif  // ORRERY_TOOLS_VALIDATION_NEAREST_STEPS_H_
