#ifndef ORRERY_TOOLS_VALIDATION_STEP_PAIRS_H_
#define ORRERY_TOOLS_VALIDATION_STEP_PAIRS_H_

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "tools/validation/step_errors.h"

// What a change does to a step, measured and predicted: rows of which one differs from the other in
// one thing. Errors that both have drop out.

namespace orrery::tools {

/// One over the other: with the change, and without. So many fields: a column each.
struct StepPair {
  std::string source, split;  // of the row with the change
  std::string id, base;
  std::string what;
  double measured_ratio = 0;  // of step times; 0: not said
  double predicted_ratio = 0;
  std::optional<double> measured_bytes = {};  // more at the peak of memory
  double predicted_bytes = 0;

  /// Whether the step is predicted to become slower where it did, or faster.
  bool right_sign() const;
  /// The same of the peak of memory.
  bool right_memory_sign() const;
};

/// Those of which both rows could be predicted, in the order of the rows.
std::vector<StepPair> PairsOf(std::span<const PredictedStep> steps);

/// Of the pairs of a source and a split whose ratio, or change of memory, was measured.
struct PairFigures {
  std::string source, split;
  std::string of;  // "time" or "memory"
  int64_t count = 0;
  int64_t right_signs = 0;
  double mean = 0;  // of time: of the absolute errors of ratios, predicted over measured, less 1
};

/// In the order in which sources and splits come first.
std::vector<PairFigures> FiguresOf(std::span<const StepPair> pairs);

/// For people: a line a pair, then one of figures a source and split. Empty where there are none.
std::string PairTable(std::span<const StepPair> pairs);

}  // namespace orrery::tools

#endif  // ORRERY_TOOLS_VALIDATION_STEP_PAIRS_H_
