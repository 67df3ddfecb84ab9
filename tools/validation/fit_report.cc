#include <cmath>
#include <map>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "support/csv.h"
#include "tools/validation/fit.h"

namespace orrery::tools {
namespace fit_report_cc {
namespace {

// Of a figure one deviation up, less the figure.
double DeviationOf(const FitReport& report, size_t j) {
  const FitParameter& parameter = report.parameters[j];
  const double move = report.fit.moves[j], deviation = report.fit.deviations[j];
  if (parameter.adds) return parameter.scale * deviation;
  return parameter.start * std::pow(1 + parameter.scale, move) *
         (std::pow(1 + parameter.scale, deviation) - 1);
}

bool IsAtLimit(const FitReport& report, size_t j) {
  return report.fit.determined[j] && report.fit.deviations[j] == 0;
}

std::string ParameterLines(const FitReport& report) {
  std::string text = absl::StrFormat("%-56s %-6s %9s %9s %9s %5s\n", "figure", "unit", "start",
                                     "fitted", "+-", "rows");
  for (size_t j = 0; j < report.parameters.size(); ++j) {
    const FitParameter& parameter = report.parameters[j];
    if (!report.fit.determined[j]) continue;
    const std::string deviation =
        IsAtLimit(report, j) ? "at limit" : absl::StrFormat("%.2g", DeviationOf(report, j));
    absl::StrAppendFormat(&text, "%-56s %-6s %9.4g %9.4g %9s %5d\n", ToString(parameter),
                          parameter.unit, parameter.start, parameter.After(report.fit.moves[j]),
                          deviation, report.telling[j]);
  }
  return text;
}

std::string DoubtLines(const FitReport& report) {
  constexpr double kHard = 0.9;
  std::string text;
  for (size_t j = 0; j < report.parameters.size(); ++j) {
    if (report.fit.determined[j]) continue;
    absl::StrAppendFormat(&text, "  %-54s %-6s %9.4g %25d\n", ToString(report.parameters[j]),
                          report.parameters[j].unit, report.parameters[j].start, report.telling[j]);
  }
  if (!text.empty())
    text = absl::StrCat("\nnot determined by these rows, left at their start:\n", text);
  std::string pairs;
  for (size_t j = 0; j < report.parameters.size(); ++j) {
    for (size_t k = j + 1; k < report.parameters.size(); ++k) {
      if (std::abs(report.fit.correlations[j][k]) < kHard) continue;
      absl::StrAppendFormat(&pairs, "  %s and %s: %+.2f\n", ToString(report.parameters[j]),
                            ToString(report.parameters[k]), report.fit.correlations[j][k]);
    }
  }
  if (!pairs.empty()) {
    absl::StrAppend(&text, "\nhard to tell apart (correlation of the two):\n", pairs);
  }
  return text;
}

struct Errors {
  std::vector<Pair> before, after;
};

// Of each source and split, the rows that were fitted apart; in the order in which they come.
std::string ErrorLines(const FitReport& report) {
  std::vector<std::string> order;
  std::map<std::string, Errors> groups;
  for (size_t i = 0; i < report.before.size(); ++i) {
    const PredictedStep &before = report.before[i], &after = report.after[i];
    if (before.seconds <= 0 || after.seconds <= 0 || before.step.seconds <= 0) continue;
    const std::string group = absl::StrFormat(
        "%-36s %-20s", before.step.source,
        absl::StrCat(before.step.split, report.fitted[i] ? ", fitted" : ", untouched"));
    if (groups.find(group) == groups.end()) order.push_back(group);
    groups[group].before.push_back({before.step.seconds, before.seconds});
    groups[group].after.push_back({after.step.seconds, after.seconds});
  }
  std::string text = absl::StrFormat("\n%-36s %-20s %5s %9s %9s\n", "mean error of",
                                     "rows that are", "rows", "before", "after");
  for (const std::string& group : order) {
    const Errors& errors = groups[group];
    absl::StrAppendFormat(&text, "%s %5d %8.2f%% %8.2f%%\n", group, errors.before.size(),
                          100 * FiguresOf(errors.before).mean, 100 * FiguresOf(errors.after).mean);
  }
  return text;
}

std::string ParametersCsv(const FitReport& report) {
  std::string text = "owner_and_figure,unit,start,fitted,deviation,state,rows_that_tell\n";
  for (size_t j = 0; j < report.parameters.size(); ++j) {
    const FitParameter& parameter = report.parameters[j];
    const char* const state = !report.fit.determined[j] ? "not determined"
                              : IsAtLimit(report, j)    ? "at its limit"
                                                        : "fitted";
    absl::StrAppendFormat(&text, "%s,%s,%.6g,%.6g,%.3g,%s,%d\n", CsvField(ToString(parameter)),
                          parameter.unit, parameter.start, parameter.After(report.fit.moves[j]),
                          DeviationOf(report, j), state, report.telling[j]);
  }
  return text;
}

std::string ResidualsCsv(const FitReport& report) {
  std::string text =
      "id,source,split,fitted,measured_s,before_s,after_s,before_error,after_error\n";
  for (size_t i = 0; i < report.before.size(); ++i) {
    const PredictedStep &before = report.before[i], &after = report.after[i];
    if (before.seconds <= 0 || after.seconds <= 0 || before.step.seconds <= 0) continue;
    absl::StrAppendFormat(&text, "%s,%s,%s,%d,%.6g,%.6g,%.6g,%.4f,%.4f\n", CsvField(before.step.id),
                          CsvField(before.step.source), CsvField(before.step.split),
                          report.fitted[i] ? 1 : 0, before.step.seconds, before.seconds,
                          after.seconds, before.seconds / before.step.seconds - 1,
                          after.seconds / after.step.seconds - 1);
  }
  return text;
}

}  // namespace
}  // namespace fit_report_cc

std::string FitText(const FitReport& report) {
  return absl::StrCat(fit_report_cc::ParameterLines(report), fit_report_cc::DoubtLines(report),
                      fit_report_cc::ErrorLines(report));
}

std::vector<std::pair<std::string, std::string>> FitFiles(const FitReport& report) {
  std::vector<std::pair<std::string, std::string>> files = FilesOf(report.figures);
  files.emplace_back("fit.csv", fit_report_cc::ParametersCsv(report));
  files.emplace_back("residuals.csv", fit_report_cc::ResidualsCsv(report));
  return files;
}

}  // namespace orrery::tools
