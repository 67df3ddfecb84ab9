#include "simulator/goodput/trials.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "support/numbers/quantile.h"
#include "support/threads.h"

namespace orrery::simulator::goodput {
namespace trials_cc {
namespace {

// Student's t for 19 of 20, two-sided, by degrees of freedom: Cornish and Fisher's expansion around
// the normal quantile; within 1 % from 3 on, and larger than it should be below.
double StudentQuantile(double freedom) {
  constexpr double z = 1.959964;
  if (freedom < 2) return 12.706;
  if (freedom < 3) return 4.303;
  const double z3 = z * z * z, z5 = z3 * z * z;
  return z + (z3 + z) / (4 * freedom) + (5 * z5 + 16 * z3 + 3 * z) / (96 * freedom * freedom) +
         (3 * z5 * z * z + 19 * z5 + 17 * z3 - 15 * z) / (384 * freedom * freedom * freedom);
}

double Mean(const std::vector<double>& values) {
  return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

}  // namespace
}  // namespace trials_cc

Spreading SpreadingOf(std::vector<double> values) {
  const auto count = static_cast<double>(values.size());
  Spreading spreading{.mean = trials_cc::Mean(values)};
  if (values.size() > 1) {
    double squares = 0;
    for (const double value : values) {
      squares += (value - spreading.mean) * (value - spreading.mean);
    }
    spreading.ci95 =
        trials_cc::StudentQuantile(count - 1) * std::sqrt(squares / (count - 1) / count);
  }
  std::sort(values.begin(), values.end());
  spreading.p5 = QuantileOf(values, 0.05);
  spreading.p50 = QuantileOf(values, 0.5);
  spreading.p95 = QuantileOf(values, 0.95);
  return spreading;
}

std::vector<TrialResult> PlayTrials(const RunSpec& spec, size_t trials, const PlayManner& manner) {
  const auto stops = [&] { return manner.stop != nullptr && *manner.stop; };
  std::vector<TrialResult> results(trials);
  std::vector<uint8_t> played(trials);
  ForEachOnThreads(trials, manner.threads, [&](size_t i) {
    if (i > 0 && stops()) return;
    results[i] = PlayTrial(spec, manner.seed, i);
    played[i] = 1;
  });
  const auto missing = std::find(played.begin(), played.end(), 0);
  results.resize(static_cast<size_t>(missing - played.begin()));
  return results;
}

RunSummary Summarize(const RunSpec& spec, const std::vector<TrialResult>& results) {
  RunSummary summary;
  const auto count = static_cast<double>(results.size());
  std::vector<double> effective, goodput, interruptions;
  summary.failures.resize(spec.failures.size());
  summary.saves.resize(spec.tiers.size());
  for (const TrialResult& result : results) {
    effective.push_back(result.trained_s / spec.length_s);
    goodput.push_back(result.worth_s / spec.length_s);
    for (size_t i = 0; i < kCauseCount; ++i) {
      summary.lost[i] += result.lost_s[i] / spec.length_s / count;
    }
    for (size_t i = 0; i < spec.failures.size(); ++i) {
      summary.failures[i] += result.failures[i] / count;
    }
    for (size_t i = 0; i < spec.tiers.size(); ++i) {
      summary.saves[i] += static_cast<double>(result.saves[i]) / count;
    }
    summary.planned_stops += result.planned_stops / count;
    interruptions.push_back(std::accumulate(result.failures.begin(), result.failures.end(), 0.0));
  }
  summary.effective = SpreadingOf(std::move(effective));
  summary.goodput = SpreadingOf(std::move(goodput));
  summary.interruptions = SpreadingOf(std::move(interruptions));
  return summary;
}

}  // namespace orrery::simulator::goodput
