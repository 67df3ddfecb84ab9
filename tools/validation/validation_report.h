#ifndef ORRERY_TOOLS_VALIDATION_VALIDATION_REPORT_H_
#define ORRERY_TOOLS_VALIDATION_VALIDATION_REPORT_H_

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "tools/validation/fitted_figures.h"
#include "tools/validation/predicted_tables.h"
#include "tools/validation/step_errors.h"

// All that `validate` predicts, as text.

namespace orrery::tools {

/// Steps, and tables of kernels and collectives, of the files that were read.
struct ValidationReport {
  std::vector<PredictedStep> steps;
  std::vector<PredictedTable> tables = {};
  size_t missing = 0;  // steps that were not predicted, since a signal came
};

/// Reads files of published rows and tables, and all files of folders, and predicts them; steps
/// with that cost model (empty: the default), `figures` in place of built-in ones, and on so many
/// threads, on which nothing depends.
absl::StatusOr<ValidationReport> PredictAll(std::span<const std::string> paths,
                                            absl::string_view cost_model,
                                            const FittedFigures& figures = {}, int32_t threads = 1);

/// For people: figures of each source, of each pair of rows that one change is between, and of each
/// table.
std::string ReportText(const ValidationReport& report);

/// One line a row, with its pair where it has one, and one a point of a table:
/// docs/command_line.md lists the columns.
std::string ReportCsv(const ValidationReport& report);

/// {"sources": [...], "rows": [...], "skipped": {...}, "pairs": [...], "pair_figures": [...],
/// "tables": [...]}; tables with their figures, without their points.
std::string ReportJson(const ValidationReport& report);

}  // namespace orrery::tools

#endif  // ORRERY_TOOLS_VALIDATION_VALIDATION_REPORT_H_
