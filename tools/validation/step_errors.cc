#include "tools/validation/step_errors.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace orrery::tools {
namespace step_errors_cc {
namespace {

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

std::vector<SetFigures> FiguresOfSets(std::span<const PredictedStep> steps) {
  std::vector<std::pair<std::string, std::string>> groups;
  for (const PredictedStep& row : steps) {
    const std::pair group(row.step.source, row.step.split);
    if (std::find(groups.begin(), groups.end(), group) == groups.end()) groups.push_back(group);
  }
  std::vector<SetFigures> figures;
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

std::map<std::string, int64_t> SkippedOf(std::span<const PredictedStep> steps) {
  std::map<std::string, int64_t> skipped;
  for (const PredictedStep& row : steps) {
    if (!row.skipped.empty()) ++skipped[row.skipped];
  }
  return skipped;
}

std::string ErrorTable(std::span<const PredictedStep> steps) {
  if (steps.empty()) return "";
  std::string out = absl::StrFormat("%-36s %-12s %-7s %5s %8s %8s %8s %9s\n", "source", "split",
                                    "of", "rows", "mean", "worst", "bias", "Spearman");
  for (const SetFigures& f : FiguresOfSets(steps)) {
    absl::StrAppendFormat(&out, "%-36s %-12s %-7s %5d %7.2f%% %7.2f%% %+7.2f%% %9.3f\n", f.source,
                          f.split, f.of, f.errors.count, 100 * f.errors.mean, 100 * f.errors.worst,
                          100 * f.errors.bias, f.errors.spearman);
  }
  const std::map<std::string, int64_t> skipped = SkippedOf(steps);
  if (!skipped.empty()) absl::StrAppend(&out, "\nskipped:\n");
  for (const auto& [reason, count] : skipped) {
    absl::StrAppendFormat(&out, "%6d  %s\n", count, reason);
  }
  return out;
}

}  // namespace orrery::tools
