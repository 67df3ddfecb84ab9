#include "tools/validation/step_errors.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <map>
#include <nlohmann/json.hpp>
#include <numeric>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "support/csv.h"

namespace orrery::tools {
namespace step_errors_cc {
namespace {

using Json = nlohmann::ordered_json;

// From 0 on; those that are equal share the mean of their positions.
std::vector<double> RanksOf(std::span<const Pair> pairs, double Pair::*which) {
  std::vector<size_t> order(pairs.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t a, size_t b) { return pairs[a].*which < pairs[b].*which; });
  std::vector<double> ranks(pairs.size());
  for (size_t i = 0; i < order.size();) {
    size_t end = i;
    while (end < order.size() && pairs[order[end]].*which == pairs[order[i]].*which) ++end;
    const double rank = static_cast<double>(i + end - 1) / 2;
    for (; i < end; ++i) ranks[order[i]] = rank;
  }
  return ranks;
}

double Spearman(std::span<const Pair> pairs) {
  const std::vector<double> x = RanksOf(pairs, &Pair::measured),
                            y = RanksOf(pairs, &Pair::predicted);
  const double mean = (static_cast<double>(pairs.size()) - 1) / 2;
  double xy = 0, xx = 0, yy = 0;
  for (size_t i = 0; i < pairs.size(); ++i) {
    xy += (x[i] - mean) * (y[i] - mean);
    xx += (x[i] - mean) * (x[i] - mean);
    yy += (y[i] - mean) * (y[i] - mean);
  }
  return xx > 0 && yy > 0 ? xy / std::sqrt(xx * yy) : 0;
}

struct Figures {
  std::string source, split, what;
  ErrorFigures errors;
};

// In the order in which sources and splits come first.
std::vector<Figures> AllFigures(std::span<const PredictedStep> steps) {
  std::vector<std::pair<std::string, std::string>> groups;
  for (const PredictedStep& row : steps) {
    const std::pair group(row.step.source, row.step.split);
    if (std::find(groups.begin(), groups.end(), group) == groups.end()) groups.push_back(group);
  }
  std::vector<Figures> figures;
  for (const auto& [source, split] : groups) {
    std::vector<Pair> times, bytes;
    for (const PredictedStep& row : steps) {
      if (row.step.source != source || row.step.split != split) continue;
      if (row.seconds > 0 && row.step.seconds > 0) times.push_back({row.step.seconds, row.seconds});
      if (row.bytes > 0 && row.step.bytes > 0) bytes.push_back({row.step.bytes, row.bytes});
    }
    if (!times.empty()) figures.push_back({source, split, "time", FiguresOf(times)});
    if (!bytes.empty()) figures.push_back({source, split, "memory", FiguresOf(bytes)});
  }
  return figures;
}

std::map<std::string, int64_t> Skipped(std::span<const PredictedStep> steps) {
  std::map<std::string, int64_t> skipped;
  for (const PredictedStep& row : steps) {
    if (!row.skipped.empty()) ++skipped[row.skipped];
  }
  return skipped;
}

std::string Cell(double value, int digits) {
  return value > 0 ? absl::StrFormat("%.*g", digits, value) : "";
}

std::string ErrorCell(double measured, double predicted) {
  if (measured <= 0 || predicted <= 0) return "";
  return absl::StrFormat("%.4f", predicted / measured - 1);
}

}  // namespace
}  // namespace step_errors_cc

ErrorFigures FiguresOf(std::span<const Pair> pairs) {
  ErrorFigures figures;
  figures.count = std::ssize(pairs);
  if (pairs.empty()) return figures;
  for (const Pair& pair : pairs) {
    const double error = pair.predicted / pair.measured - 1;
    figures.mean += std::abs(error);
    figures.bias += error;
    figures.worst = std::max(figures.worst, std::abs(error));
  }
  figures.mean /= static_cast<double>(pairs.size());
  figures.bias /= static_cast<double>(pairs.size());
  figures.spearman = step_errors_cc::Spearman(pairs);
  return figures;
}

std::string ErrorTable(std::span<const PredictedStep> steps) {
  std::string out = absl::StrFormat("%-36s %-12s %-7s %5s %8s %8s %8s %9s\n", "source", "split",
                                    "of", "rows", "mean", "worst", "bias", "Spearman");
  for (const step_errors_cc::Figures& f : step_errors_cc::AllFigures(steps)) {
    absl::StrAppendFormat(&out, "%-36s %-12s %-7s %5d %7.2f%% %7.2f%% %+7.2f%% %9.3f\n", f.source,
                          f.split, f.what, f.errors.count, 100 * f.errors.mean,
                          100 * f.errors.worst, 100 * f.errors.bias, f.errors.spearman);
  }
  const std::map<std::string, int64_t> skipped = step_errors_cc::Skipped(steps);
  if (!skipped.empty()) absl::StrAppend(&out, "\nskipped:\n");
  for (const auto& [reason, count] : skipped) {
    absl::StrAppendFormat(&out, "%6d  %s\n", count, reason);
  }
  return out;
}

std::string ErrorCsv(std::span<const PredictedStep> steps) {
  std::string out =
      "id,measured_s,predicted_s,error,skipped,measured_bytes,predicted_bytes,memory_error,source,"
      "split\n";
  for (const PredictedStep& row : steps) {
    const MeasuredStep& step = row.step;
    const std::string of_time = step_errors_cc::ErrorCell(step.seconds, row.seconds);
    const std::string of_memory = step_errors_cc::ErrorCell(step.bytes, row.bytes);
    absl::StrAppend(&out, CsvField(step.id), ",", step_errors_cc::Cell(step.seconds, 6), ",",
                    step_errors_cc::Cell(row.seconds, 6), ",",
                    step.seconds > 0 ? of_time : of_memory, ",", CsvField(row.skipped), ",",
                    step_errors_cc::Cell(step.bytes, 12), ",", step_errors_cc::Cell(row.bytes, 12),
                    ",", of_memory, ",", CsvField(step.source), ",", CsvField(step.split), "\n");
  }
  return out;
}

std::string ErrorJson(std::span<const PredictedStep> steps) {
  step_errors_cc::Json sources = step_errors_cc::Json::array(),
                       rows = step_errors_cc::Json::array();
  for (const step_errors_cc::Figures& f : step_errors_cc::AllFigures(steps)) {
    sources.push_back({{"source", f.source},
                       {"split", f.split},
                       {"of", f.what},
                       {"rows", f.errors.count},
                       {"mean_error", f.errors.mean},
                       {"worst_error", f.errors.worst},
                       {"bias", f.errors.bias},
                       {"spearman", f.errors.spearman}});
  }
  const auto number = [](double value) {
    return value > 0 ? step_errors_cc::Json(value) : step_errors_cc::Json();
  };
  for (const PredictedStep& row : steps) {
    rows.push_back({{"id", row.step.id},
                    {"source", row.step.source},
                    {"split", row.step.split},
                    {"measured_s", number(row.step.seconds)},
                    {"predicted_s", number(row.seconds)},
                    {"measured_bytes", number(row.step.bytes)},
                    {"predicted_bytes", number(row.bytes)},
                    {"skipped", row.skipped.empty() ? step_errors_cc::Json()
                                                    : step_errors_cc::Json(row.skipped)}});
  }
  const step_errors_cc::Json report = {
      {"sources", sources}, {"rows", rows}, {"skipped", step_errors_cc::Skipped(steps)}};
  return absl::StrCat(report.dump(1), "\n");
}

}  // namespace orrery::tools
