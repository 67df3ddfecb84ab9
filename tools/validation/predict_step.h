#ifndef ORRERY_TOOLS_VALIDATION_PREDICT_STEP_H_
#define ORRERY_TOOLS_VALIDATION_PREDICT_STEP_H_

#include <memory>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "tools/validation/fitted_figures.h"
#include "tools/validation/rows/measured_steps.h"
#include "tools/validation/step_errors.h"
#include "transforms/stages/pipeline.h"

// Predictions of published rows, by simulation.

namespace orrery::tools {

/// What a row was parallelized into.
using StepWay = std::unique_ptr<const transforms::PipelinedStep>;

/// Simulates the row with that cost model; empty: with the default. What stands in its way is the
/// reason why it is skipped. With `figures`, those stand for built-in ones. `way` is set to what it
/// was parallelized into.
PredictedStep Predict(const MeasuredStep& step, absl::string_view cost_model,
                      const FittedFigures* figures = nullptr, StepWay* way = nullptr);

/// The step time by other figures, of what Predict parallelized it into: in a tenth to a half of
/// the time, and as Predict has it unless those figures choose another way.
absl::StatusOr<double> PredictAgain(const MeasuredStep& step, absl::string_view cost_model,
                                    const FittedFigures& figures,
                                    const transforms::PipelinedStep& way);

}  // namespace orrery::tools

#endif  // ORRERY_TOOLS_VALIDATION_PREDICT_STEP_H_
