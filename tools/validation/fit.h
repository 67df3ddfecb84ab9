#ifndef ORRERY_TOOLS_VALIDATION_FIT_H_
#define ORRERY_TOOLS_VALIDATION_FIT_H_

#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "tools/validation/fit_parameters.h"
#include "tools/validation/fitted_figures.h"
#include "tools/validation/robust_fit.h"
#include "tools/validation/rows/measured_steps.h"
#include "tools/validation/step_errors.h"

// Figures of devices, libraries and stacks from measured steps: docs/fitting.md.

namespace orrery::tools {

/// How rows are fitted.
struct FitOptions {
  std::string cost_model = {};  // as --cost-model; empty: the default
  FittedFigures start = {};     // in place of built-in figures
  /// So many rows of each source and split are taken as this about lasts for.
  int64_t most_predictions = 800;
  int32_t threads = 1;  // on which nothing depends but the time it takes
};

/// A fit, and what became of the rows that were taken. So many fields: parts of the report.
struct FitReport {
  std::vector<FitParameter> parameters;
  RobustFit fit;
  std::vector<int64_t> telling;  // of each parameter, the fitted rows that it matters to
  std::vector<PredictedStep> before, after;
  std::vector<bool> fitted;  // of each of these
  FittedFigures figures;     // of the owners of which a figure has moved
};

/// Fits on rows whose split is "calibration", and on no other, and predicts rows of other splits
/// before and after; all of rows whose time was measured and can be predicted. FailedPrecondition
/// where none is for calibration.
absl::StatusOr<FitReport> Fit(std::span<const MeasuredStep> steps, const FitOptions& options);

/// All rows, as Predict does, on so many threads.
std::vector<PredictedStep> PredictSteps(std::span<const MeasuredStep> steps,
                                        absl::string_view cost_model, const FittedFigures& figures,
                                        int32_t threads);

/// For people: each parameter, then those that are not determined and pairs that are hard to tell
/// apart, then errors before and after.
std::string FitText(const FitReport& report);

/// The files of the figures, and `fit.csv` and `residuals.csv`: names and texts.
std::vector<std::pair<std::string, std::string>> FitFiles(const FitReport& report);

}  // namespace orrery::tools

#endif  // ORRERY_TOOLS_VALIDATION_FIT_H_
