#include "simulator/goodput/best_interval.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <vector>

#include "simulator/goodput/trials.h"

namespace orrery::simulator::goodput {
namespace best_interval_cc {
namespace {

// Enough failures that what they cost is known to half a hundredth of itself, more or less; and few
// enough that they are played in a fraction of a second.
size_t TrialsFor(const RunSpec& spec) {
  constexpr double kFailures = 40'000;
  const double in_run = FailuresPerSecond(spec) * spec.length_s;
  return static_cast<size_t>(std::clamp(kFailures / std::max(in_run, 1.0), 16.0, 1'024.0));
}

class IntervalSearch {
 public:
  IntervalSearch(const RunSpec& spec, size_t tier, const PlayManner& manner)
      : spec_(spec), tier_(tier), manner_(manner), trials_(TrialsFor(spec)) {
    least_ = LeastSteps(spec.tiers[tier], spec.step_s);
    most_ = std::max(static_cast<int64_t>(spec.length_s / spec.step_s), least_);
  }

  int64_t Clamp(double steps) const {
    return std::llround(std::clamp(steps, static_cast<double>(least_), static_cast<double>(most_)));
  }

  double GoodputOf(int64_t steps) const {
    RunSpec spec = spec_;
    spec.tiers[tier_].every_steps = steps;
    OrderTiers(spec.tiers, spec.step_s);
    return Summarize(spec, PlayTrials(spec, trials_, manner_)).goodput.mean;
  }

  // The best around a guess, within a factor of kReach either way; then around that.
  int64_t Around(int64_t guess) const {
    constexpr int kRounds = 4;
    constexpr double kReach = 2.5;
    for (int round = 0; round < kRounds; ++round) {
      const int64_t found = Clamp(Peak(static_cast<double>(guess), kReach));
      const double moved =
          std::abs(std::log(static_cast<double>(found) / static_cast<double>(guess)));
      guess = found;
      const bool stops = manner_.stop != nullptr && *manner_.stop;
      if (moved < 0.5 * std::log(kReach) || stops) break;
    }
    return guess;
  }

 private:
  // The peak of a parabola through goodputs over logarithms of steps, by least squares; where it
  // opens upwards or peaks outside, the best of its points.
  double Peak(double guess, double reach) const {
    constexpr int kSide = 4;
    std::array<double, 5> sums = {};    // of powers of x
    std::array<double, 3> fitted = {};  // of goodputs times powers of x
    double best = guess, best_goodput = -1;
    double first = 0;
    for (int i = -kSide; i <= kSide; ++i) {
      const int64_t steps = Clamp(guess * std::pow(reach, static_cast<double>(i) / kSide));
      const double x = std::log(static_cast<double>(steps) / guess);
      double goodput = GoodputOf(steps);
      if (goodput > best_goodput) {
        best_goodput = goodput;
        best = static_cast<double>(steps);
      }
      if (i == -kSide) first = goodput;
      goodput -= first;  // so that nothing cancels
      for (size_t power = 0; power < sums.size(); ++power) {
        sums[power] += std::pow(x, static_cast<double>(power));
        if (power < fitted.size())
          fitted[power] += goodput * std::pow(x, static_cast<double>(power));
      }
    }
    const std::array<double, 3> parabola = Solve(sums, fitted);
    const double a = parabola[2], b = parabola[1];
    const double peak = a < 0 ? -b / (2 * a) : std::log(best / guess);
    if (a >= 0 || std::abs(peak) > std::log(reach)) return best;
    return guess * std::exp(peak);
  }

  // y = c + b x + a x², by Cramer's rule.
  static std::array<double, 3> Solve(const std::array<double, 5>& s,
                                     const std::array<double, 3>& y) {
    const auto determinant = [](const std::array<std::array<double, 3>, 3>& m) {
      return m[0][0] * (m[1][1] * m[2][2] - m[1][2] * m[2][1]) -
             m[0][1] * (m[1][0] * m[2][2] - m[1][2] * m[2][0]) +
             m[0][2] * (m[1][0] * m[2][1] - m[1][1] * m[2][0]);
    };
    const std::array<std::array<double, 3>, 3> all = {
        {{s[0], s[1], s[2]}, {s[1], s[2], s[3]}, {s[2], s[3], s[4]}}};
    const double whole = determinant(all);
    std::array<double, 3> solved = {};
    for (size_t column = 0; column < 3; ++column) {
      std::array<std::array<double, 3>, 3> one = all;
      for (size_t row = 0; row < 3; ++row) one[row][column] = y[row];
      solved[column] = whole != 0 ? determinant(one) / whole : 0;
    }
    return solved;
  }

  const RunSpec& spec_;
  const size_t tier_;
  const PlayManner manner_;
  const size_t trials_;
  int64_t least_ = 1, most_ = 1;
};

}  // namespace
}  // namespace best_interval_cc

double YoungInterval(double cost_s, double mtbf_s) { return std::sqrt(2 * cost_s * mtbf_s); }

double DalyInterval(double cost_s, double mtbf_s) {
  if (cost_s >= 2 * mtbf_s) return mtbf_s;
  const double d = cost_s / (2 * mtbf_s);
  return YoungInterval(cost_s, mtbf_s) * (1 + std::sqrt(d) / 3 + d / 9) - cost_s;
}

double DalyEfficiency(double interval_s, double cost_s, double restart_s, double mtbf_s) {
  return interval_s /
         (mtbf_s * std::exp(restart_s / mtbf_s) * std::expm1((interval_s + cost_s) / mtbf_s));
}

double LikelyInterval(const RunSpec& spec, const CheckpointTier& tier) {
  const double per_second = FailuresPerSecond(spec);
  if (per_second <= 0) return spec.length_s;
  // A checkpoint that costs nothing is best as often as can be; one step is not nothing.
  const double cost_s = std::max(tier.stall_s + tier.drag_s, 1e-3 * spec.step_s);
  return DalyInterval(cost_s, 1 / per_second);
}

BestInterval FindBestInterval(const RunSpec& spec, size_t tier, const PlayManner& manner) {
  const best_interval_cc::IntervalSearch search(spec, tier, manner);
  int64_t steps = search.Clamp(LikelyInterval(spec, spec.tiers[tier]) / spec.step_s);
  if (FailuresPerSecond(spec) > 0) steps = search.Around(steps);
  return {.steps = steps,
          .seconds = static_cast<double>(steps) * spec.step_s,
          .goodput = search.GoodputOf(steps)};
}

std::vector<BestInterval> GoodputByInterval(const RunSpec& spec, size_t tier, int64_t around,
                                            const PlayManner& manner) {
  constexpr int kSide = 6;
  constexpr double kReach = 8;
  const best_interval_cc::IntervalSearch search(spec, tier, manner);
  std::vector<BestInterval> points;
  for (int i = -kSide; i <= kSide; ++i) {
    const double factor = std::pow(kReach, static_cast<double>(i) / kSide);
    const int64_t steps = search.Clamp(static_cast<double>(around) * factor);
    if (!points.empty() && points.back().steps >= steps) continue;
    points.push_back({.steps = steps,
                      .seconds = static_cast<double>(steps) * spec.step_s,
                      .goodput = search.GoodputOf(steps)});
  }
  return points;
}

}  // namespace orrery::simulator::goodput
