#include "tools/validation/validation_report.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <nlohmann/json.hpp>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "support/csv.h"
#include "support/status.h"
#include "tools/terminal/interrupt.h"
#include "tools/validation/fit.h"
#include "tools/validation/predict_step.h"
#include "tools/validation/step_pairs.h"

namespace orrery::tools {
namespace validation_report_cc {
namespace {

using Json = nlohmann::ordered_json;

std::string Cell(double value, int digits) {
  return value > 0 ? absl::StrFormat("%.*g", digits, value) : "";
}

std::string ErrorCell(double measured, double predicted) {
  if (measured <= 0 || predicted <= 0) return "";
  return absl::StrFormat("%.4f", predicted / measured - 1);
}

// The six last columns.
std::string PairCells(const StepPair* pair) {
  if (pair == nullptr) return ",,,,,";
  const std::string bytes =
      pair->measured_bytes.has_value() ? absl::StrFormat("%.12g", *pair->measured_bytes) : "";
  return absl::StrCat(CsvField(pair->base), ",", CsvField(pair->what), ",",
                      Cell(pair->measured_ratio, 6), ",", Cell(pair->predicted_ratio, 6), ",",
                      bytes, ",",
                      bytes.empty() ? "" : absl::StrFormat("%.12g", pair->predicted_bytes));
}

std::string StepLine(const PredictedStep& row, const StepPair* pair) {
  const MeasuredStep& step = row.step;
  const std::string of_time = ErrorCell(step.seconds, row.seconds);
  const std::string of_memory = ErrorCell(step.bytes, row.bytes);
  return absl::StrCat(CsvField(step.id), ",", Cell(step.seconds, 6), ",", Cell(row.seconds, 6), ",",
                      step.seconds > 0 ? of_time : of_memory, ",", CsvField(row.skipped), ",",
                      Cell(step.bytes, 12), ",", Cell(row.bytes, 12), ",", of_memory, ",",
                      CsvField(step.source), ",", CsvField(step.split), ",", PairCells(pair), "\n");
}

std::string TableLines(const PredictedTable& table) {
  std::string lines;
  for (const PredictedPoint& point : table.points) {
    absl::StrAppend(&lines, CsvField(absl::StrCat(table.name, " ", point.what)), ",",
                    Cell(point.measured, 6), ",", Cell(point.predicted, 6), ",",
                    ErrorCell(point.measured, point.predicted), ",,,,,", CsvField(table.source),
                    ",", CsvField(table.split), ",", PairCells(nullptr), "\n");
  }
  return lines;
}

Json NumberOrNull(double value) { return value > 0 ? Json(value) : Json(); }

Json RowsJson(const std::vector<PredictedStep>& steps) {
  Json rows = Json::array();
  for (const PredictedStep& row : steps) {
    rows.push_back({{"id", row.step.id},
                    {"source", row.step.source},
                    {"split", row.step.split},
                    {"measured_s", NumberOrNull(row.step.seconds)},
                    {"predicted_s", NumberOrNull(row.seconds)},
                    {"measured_bytes", NumberOrNull(row.step.bytes)},
                    {"predicted_bytes", NumberOrNull(row.bytes)},
                    {"skipped", row.skipped.empty() ? Json() : Json(row.skipped)}});
  }
  return rows;
}

Json SourcesJson(const std::vector<PredictedStep>& steps) {
  Json sources = Json::array();
  for (const SetFigures& f : FiguresOfSets(steps)) {
    sources.push_back({{"source", f.source},
                       {"split", f.split},
                       {"of", f.of},
                       {"rows", f.errors.count},
                       {"mean_error", f.errors.mean},
                       {"worst_error", f.errors.worst},
                       {"bias", f.errors.bias},
                       {"spearman", f.errors.spearman}});
  }
  return sources;
}

Json PairsJson(const std::vector<StepPair>& pairs) {
  Json all = Json::array();
  for (const StepPair& pair : pairs) {
    const bool of_memory = pair.measured_bytes.has_value(), of_time = pair.measured_ratio > 0;
    all.push_back({{"id", pair.id},
                   {"base", pair.base},
                   {"source", pair.source},
                   {"split", pair.split},
                   {"changed", pair.what},
                   {"measured_ratio", NumberOrNull(pair.measured_ratio)},
                   {"predicted_ratio", pair.predicted_ratio},
                   {"right_sign", of_time ? Json(pair.right_sign()) : Json()},
                   {"measured_bytes", of_memory ? Json(*pair.measured_bytes) : Json()},
                   {"predicted_bytes", pair.predicted_bytes},
                   {"right_memory_sign", of_memory ? Json(pair.right_memory_sign()) : Json()}});
  }
  return all;
}

Json PairFiguresJson(const std::vector<StepPair>& pairs) {
  Json all = Json::array();
  for (const PairFigures& figures : FiguresOf(pairs)) {
    const bool of_time = figures.of == "time";
    all.push_back({{"source", figures.source},
                   {"split", figures.split},
                   {"of", figures.of},
                   {"pairs", figures.count},
                   {"right_signs", figures.right_signs},
                   {"mean_error", of_time ? Json(figures.mean) : Json()}});
  }
  return all;
}

Json TablesJson(const std::vector<PredictedTable>& tables) {
  Json all = Json::array();
  for (const PredictedTable& table : tables) {
    const TableFigures figures = FiguresOf(table);
    all.push_back({{"source", table.source},
                   {"table", table.name},
                   {"split", table.split},
                   {"points", figures.errors.count},
                   {"median_error", figures.median},
                   {"mean_error", figures.errors.mean},
                   {"worst_error", figures.errors.worst},
                   {"bias", figures.errors.bias},
                   {"skipped", table.skipped}});
  }
  return all;
}

}  // namespace
}  // namespace validation_report_cc

absl::StatusOr<ValidationReport> PredictAll(std::span<const std::string> paths,
                                            absl::string_view cost_model,
                                            const FittedFigures& figures, int32_t threads) {
  ValidationReport report;
  for (const std::string& path : paths) {
    ORRERY_ASSIGN_OR_RETURN(const std::vector<MeasuredStep> steps, ReadMeasuredSteps(path));
    std::vector<PredictedStep> predicted = PredictSteps(steps, cost_model, figures, threads);
    report.missing += steps.size() - predicted.size();
    std::ranges::move(predicted, std::back_inserter(report.steps));
    if (CaughtSignal() != 0) break;
    ORRERY_ASSIGN_OR_RETURN(std::vector<PredictedTable> tables, PredictAllTables(path));
    std::ranges::move(tables, std::back_inserter(report.tables));
  }
  return report;
}

std::string ReportText(const ValidationReport& report) {
  return absl::StrCat(ErrorTable(report.steps), PairTable(PairsOf(report.steps)),
                      TableText(report.tables));
}

std::string ReportCsv(const ValidationReport& report) {
  const std::vector<StepPair> pairs = PairsOf(report.steps);
  std::map<std::pair<std::string, std::string>, const StepPair*> by_id;
  for (const StepPair& pair : pairs) by_id.try_emplace({pair.source, pair.id}, &pair);
  std::string out =
      "id,measured_s,predicted_s,error,skipped,measured_bytes,predicted_bytes,memory_error,source,"
      "split,base,changed,measured_ratio,predicted_ratio,measured_change_bytes,"
      "predicted_change_bytes\n";
  for (const PredictedStep& row : report.steps) {
    const auto pair = by_id.find({row.step.source, row.step.id});
    absl::StrAppend(
        &out, validation_report_cc::StepLine(row, pair == by_id.end() ? nullptr : pair->second));
  }
  for (const PredictedTable& table : report.tables) {
    absl::StrAppend(&out, validation_report_cc::TableLines(table));
  }
  return out;
}

std::string ReportJson(const ValidationReport& report) {
  const std::vector<StepPair> pairs = PairsOf(report.steps);
  const validation_report_cc::Json json = {
      {"sources", validation_report_cc::SourcesJson(report.steps)},
      {"rows", validation_report_cc::RowsJson(report.steps)},
      {"skipped", SkippedOf(report.steps)},
      {"pairs", validation_report_cc::PairsJson(pairs)},
      {"pair_figures", validation_report_cc::PairFiguresJson(pairs)},
      {"tables", validation_report_cc::TablesJson(report.tables)}};
  return absl::StrCat(json.dump(1, ' ', false, nlohmann::json::error_handler_t::replace), "\n");
}

}  // namespace orrery::tools
