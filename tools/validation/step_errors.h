#ifndef ORRERY_TOOLS_VALIDATION_STEP_ERRORS_H_
#define ORRERY_TOOLS_VALIDATION_STEP_ERRORS_H_

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "tools/validation/rows/measured_steps.h"
#include "tools/validation/step_features.h"

// How far predictions are from measurements.

namespace orrery::tools {

/// A row, and what was predicted of it. 0: nothing was.
struct PredictedStep {
  MeasuredStep step;
  double seconds = 0;
  double bytes = 0;
  std::string skipped = {};    // why nothing was
  StepFeatures features = {};  // of one that was
};

/// Of pairs of a prediction and a measurement. Errors are predicted over measured, less 1.
struct ErrorFigures {
  int64_t count = 0;
  double mean = 0;      // of absolute errors
  double worst = 0;     // absolute error
  double bias = 0;      // mean error
  double spearman = 0;  // correlation of ranks; 0 where all are one
};
struct Pair {
  double measured = 0, predicted = 0;
};
ErrorFigures FiguresOf(std::span<const Pair> pairs);

/// Those of the times, or of the peaks of memory, of a source and a split.
struct SetFigures {
  std::string source, split;
  std::string of;  // "time" or "memory"
  ErrorFigures errors;
};
/// In the order in which sources and splits come first.
std::vector<SetFigures> FiguresOfSets(std::span<const PredictedStep> steps);

/// Why rows were skipped, with how many.
std::map<std::string, int64_t> SkippedOf(std::span<const PredictedStep> steps);

/// For people: a line for the times and one for the memory of each source and split, in the order
/// in which they come; then why rows were skipped, with how many. Empty where there are no rows.
std::string ErrorTable(std::span<const PredictedStep> steps);

}  // namespace orrery::tools

#endif  // ORRERY_TOOLS_VALIDATION_STEP_ERRORS_H_
