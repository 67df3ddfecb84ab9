#ifndef ORRERY_TOOLS_VALIDATION_PREDICTED_TABLES_H_
#define ORRERY_TOOLS_VALIDATION_PREDICTED_TABLES_H_

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "tools/validation/step_errors.h"

// Measured kernels and collectives beside what `kernel` and `collective` say of them.

namespace orrery::tools {

/// A point of a table: what was measured, by its figures, as "m=4096,n=4096,k=4096".
struct PredictedPoint {
  std::string what;
  double measured = 0;  // seconds
  double predicted = 0;
};

/// A table of a file, a sweep, or rows that are a kernel each.
struct PredictedTable {
  std::string source, split;
  std::string name;  // device, type or library, and what was measured
  std::vector<PredictedPoint> points = {};
  std::map<std::string, int64_t> skipped = {};  // why points of it could not be predicted
};

/// Errors of the points of a table, and the median of absolute errors.
struct TableFigures {
  ErrorFigures errors;
  double median = 0;
};
TableFigures FiguresOf(const PredictedTable& table);

/// Reads and predicts what a file has of {"tables": [{"gpu", "dtype", "op", "fields": [...],
/// "points": [[...], ...]}]}, of rows with an "op", and of rows with a "collective":
/// docs/validation_memory.md lists the fields. Nothing where it has none. A burst is priced at the
/// clock of a burst; what the source timed back to back, in training's layouts, at that of
/// training.
absl::StatusOr<std::vector<PredictedTable>> PredictTables(absl::string_view text,
                                                          const std::string& name);

/// The tables of a file, or of all files of a folder that end in ".json", by their names.
absl::StatusOr<std::vector<PredictedTable>> PredictAllTables(const std::string& path);

/// For people: a line a table; then why points were skipped, with how many. Empty where there are
/// no tables.
std::string TableText(std::span<const PredictedTable> tables);

}  // namespace orrery::tools

#endif  // ORRERY_TOOLS_VALIDATION_PREDICTED_TABLES_H_
