#include "tools/validation/robust_fit.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "support/numbers/median.h"

namespace orrery::tools {
namespace robust_fit_cc {
namespace {

using Vector = std::vector<double>;
using Matrix = std::vector<Vector>;

constexpr double kHuber = 1.345;  // 95 % as good as least squares where errors are normal
constexpr double kNormalMedian = 1.4826;
constexpr int kReweights = 30;
constexpr int kSweeps = 400;
constexpr double kMostDeviation = 0.5;
constexpr double kSmall = 1e-9;

// Few rows beside many unknowns come out nearer than they are.
Vector SpreadsOf(const Vector& errors, const FitRows& rows, const std::vector<bool>& free,
                 double least) {
  const int32_t groups =
      rows.groups.empty() ? 0 : 1 + *std::max_element(rows.groups.begin(), rows.groups.end());
  Vector spreads;
  for (int32_t group = 0; group < groups; ++group) {
    Vector absolute;
    std::vector<bool> told(free.size(), false);
    for (size_t row = 0; row < errors.size(); ++row) {
      if (rows.groups[row] != group) continue;
      absolute.push_back(std::abs(errors[row]));
      for (size_t j = 0; j < free.size(); ++j) {
        told[j] = told[j] || (free[j] && std::abs(rows.slopes[row][j]) > kSmall);
      }
    }
    const auto count = static_cast<double>(absolute.size());
    const auto unknowns = static_cast<double>(std::ranges::count(told, true));
    const double few = std::sqrt(count / std::max(1.0, count - unknowns));
    spreads.push_back(std::max(least, kNormalMedian * MedianOf(std::move(absolute)) * few));
  }
  return spreads;
}

// Errors where they go with slopes, `moves` away.
Vector LinearErrors(const FitRows& rows, const Vector& from, const Vector& moves) {
  Vector errors = rows.errors;
  for (size_t row = 0; row < errors.size(); ++row) {
    for (size_t j = 0; j < moves.size(); ++j) {
      errors[row] += rows.slopes[row][j] * (moves[j] - from[j]);
    }
  }
  return errors;
}

// Of a sum of squares: information * moves = wanted.
struct NormalEquations {
  Matrix information;
  Vector wanted;
};

NormalEquations EquationsOf(const FitRows& rows, const Vector& from, const Vector& errors,
                            const Vector& spreads) {
  const size_t unknowns = from.size();
  NormalEquations equations{Matrix(unknowns, Vector(unknowns, 0)), Vector(unknowns, 0)};
  for (size_t j = 0; j < unknowns; ++j) equations.information[j][j] = 1;  // what one expects
  for (size_t row = 0; row < errors.size(); ++row) {
    const double spread = spreads[static_cast<size_t>(rows.groups[row])];
    const double beyond = std::abs(errors[row]) / (kHuber * spread);
    const double weight = 1 / (spread * spread * std::max(1.0, beyond));
    const Vector& slopes = rows.slopes[row];
    double at_start = rows.errors[row];
    for (size_t j = 0; j < unknowns; ++j) at_start -= slopes[j] * from[j];
    for (size_t j = 0; j < unknowns; ++j) {
      if (slopes[j] == 0) continue;
      equations.wanted[j] -= weight * slopes[j] * at_start;
      for (size_t k = 0; k < unknowns; ++k) {
        equations.information[j][k] += weight * slopes[j] * slopes[k];
      }
    }
  }
  return equations;
}

// The least within the ranges, one unknown after the other; those that are not free stay.
void Descend(const NormalEquations& equations, const std::vector<UnknownRange>& ranges,
             const std::vector<bool>& free, Vector& moves) {
  for (int sweep = 0; sweep < kSweeps; ++sweep) {
    double most = 0;
    for (size_t j = 0; j < moves.size(); ++j) {
      if (!free[j]) continue;
      double rest = equations.wanted[j];
      for (size_t k = 0; k < moves.size(); ++k) {
        if (k != j) rest -= equations.information[j][k] * moves[k];
      }
      const double move =
          std::clamp(rest / equations.information[j][j], ranges[j].least, ranges[j].most);
      most = std::max(most, std::abs(move - moves[j]));
      moves[j] = move;
    }
    if (most < kSmall) return;
  }
}

// Inverse of what `kept` says of a symmetric positive matrix, by Gauss and Jordan; 0 elsewhere.
Matrix InverseOf(const Matrix& matrix, const std::vector<bool>& kept) {
  const size_t size = matrix.size();
  Matrix left = matrix, right(size, Vector(size, 0));
  for (size_t j = 0; j < size; ++j) right[j][j] = kept[j] ? 1 : 0;
  for (size_t pivot = 0; pivot < size; ++pivot) {
    if (!kept[pivot]) continue;
    const double scale = 1 / left[pivot][pivot];
    for (size_t k = 0; k < size; ++k) {
      left[pivot][k] *= scale;
      right[pivot][k] *= scale;
    }
    for (size_t row = 0; row < size; ++row) {
      if (row == pivot || !kept[row]) continue;
      const double factor = left[row][pivot];
      for (size_t k = 0; k < size; ++k) {
        left[row][k] -= factor * left[pivot][k];
        right[row][k] -= factor * right[pivot][k];
      }
    }
  }
  return right;
}

// The answer where these unknowns are free.
RobustFit SolveFor(const FitRows& rows, const Vector& from, const std::vector<UnknownRange>& ranges,
                   const std::vector<bool>& free, double least_spread) {
  const size_t unknowns = from.size();
  RobustFit fit;
  fit.determined = free;
  fit.moves.assign(unknowns, 0);
  for (size_t j = 0; j < unknowns; ++j) {
    if (free[j]) fit.moves[j] = from[j];
  }
  NormalEquations equations;
  for (int i = 0; i < kReweights; ++i) {
    const Vector errors = LinearErrors(rows, from, fit.moves);
    fit.spreads = SpreadsOf(errors, rows, free, least_spread);
    equations = EquationsOf(rows, from, errors, fit.spreads);
    Descend(equations, ranges, free, fit.moves);
  }
  std::vector<bool> inside = free;
  for (size_t j = 0; j < unknowns; ++j) {
    inside[j] = free[j] && fit.moves[j] > ranges[j].least && fit.moves[j] < ranges[j].most;
  }
  const Matrix covariance = InverseOf(equations.information, inside);
  fit.deviations.assign(unknowns, 0);
  fit.correlations.assign(unknowns, Vector(unknowns, 0));
  for (size_t j = 0; j < unknowns; ++j) {
    if (inside[j]) fit.deviations[j] = std::sqrt(std::max(0.0, covariance[j][j]));
  }
  for (size_t j = 0; j < unknowns; ++j) {
    for (size_t k = 0; k < unknowns; ++k) {
      if (j == k || !inside[j] || !inside[k]) continue;
      fit.correlations[j][k] = covariance[j][k] / (fit.deviations[j] * fit.deviations[k]);
    }
  }
  return fit;
}

// Slopes by what a move has done to the errors: Broyden's (1965), row by row, of the unknowns that
// the row depends on.
void Update(const Vector& errors, const Vector& from, const Vector& to, FitRows& rows) {
  for (size_t row = 0; row < errors.size(); ++row) {
    Vector& slopes = rows.slopes[row];
    double missed = errors[row] - rows.errors[row], squares = 0;
    for (size_t j = 0; j < slopes.size(); ++j) {
      if (slopes[j] == 0) continue;
      missed -= slopes[j] * (to[j] - from[j]);
      squares += (to[j] - from[j]) * (to[j] - from[j]);
    }
    for (size_t j = 0; j < slopes.size(); ++j) {
      if (slopes[j] != 0 && squares > 0) slopes[j] += missed * (to[j] - from[j]) / squares;
    }
  }
}

double MostMove(const Vector& a, const Vector& b) {
  double most = 0;
  for (size_t j = 0; j < a.size(); ++j) most = std::max(most, std::abs(a[j] - b[j]));
  return most;
}

}  // namespace
}  // namespace robust_fit_cc

double LossOf(const std::vector<double>& errors, const FitRows& rows,
              const std::vector<double>& spreads, const std::vector<double>& moves) {
  using robust_fit_cc::kHuber;
  double loss = 0;
  for (const double move : moves) loss += move * move;
  for (size_t row = 0; row < errors.size(); ++row) {
    const double error = std::abs(errors[row]) / spreads[static_cast<size_t>(rows.groups[row])];
    loss += error <= kHuber ? error * error : kHuber * (2 * error - kHuber);
  }
  return loss;
}

RobustFit SolveRobustly(const FitRows& rows, const std::vector<double>& from,
                        const std::vector<UnknownRange>& ranges, double least_spread) {
  using namespace robust_fit_cc;  // NOLINT(google-build-using-namespace): this file's own
  std::vector<bool> free(from.size(), false);
  for (const Vector& slopes : rows.slopes) {
    for (size_t j = 0; j < free.size(); ++j) free[j] = free[j] || std::abs(slopes[j]) > kSmall;
  }
  while (true) {
    RobustFit fit = SolveFor(rows, from, ranges, free, least_spread);
    const auto worst = std::ranges::max_element(fit.deviations);
    if (worst == fit.deviations.end() || *worst <= kMostDeviation) return fit;
    free[static_cast<size_t>(worst - fit.deviations.begin())] = false;
  }
}

RobustFit FitRobustly(const FitProblem& problem) {
  using robust_fit_cc::MostMove;
  constexpr double kDone = 0.004, kFar = 1, kMostAtOnce = 1;
  const std::vector<double> start(problem.ranges.size(), 0);
  std::vector<double> at = start, slopes_at = start;
  FitRows rows{.errors = problem.errors(at), .slopes = {}, .groups = problem.groups};
  rows.slopes = problem.slopes(at, rows.errors);
  int32_t halvings = 8;
  bool again = true;  // slopes may be asked for once more
  for (int32_t round = 0; round < problem.rounds; ++round) {
    const RobustFit fit = SolveRobustly(rows, at, problem.ranges, problem.least_spread);
    std::vector<double> to = fit.moves;
    for (size_t j = 0; j < to.size(); ++j) {
      to[j] = std::clamp(to[j], at[j] - kMostAtOnce, at[j] + kMostAtOnce);
    }
    if (MostMove(to, at) < kDone) break;
    const double loss = LossOf(rows.errors, rows, fit.spreads, at);
    std::vector<double> errors = problem.errors(to);
    while (LossOf(errors, rows, fit.spreads, to) > loss && halvings-- > 0) {
      for (size_t j = 0; j < to.size(); ++j) to[j] = (to[j] + at[j]) / 2;
      errors = problem.errors(to);
    }
    if (LossOf(errors, rows, fit.spreads, to) > loss) break;
    robust_fit_cc::Update(errors, at, to, rows);
    at = std::move(to);
    rows.errors = std::move(errors);
    if (again && MostMove(at, slopes_at) > kFar) {
      rows.slopes = problem.slopes(at, rows.errors);
      slopes_at = at;
      again = false;
    }
  }
  RobustFit fit = SolveRobustly(rows, at, problem.ranges, problem.least_spread);
  fit.moves = at;
  for (size_t j = 0; j < at.size(); ++j) {
    if (!fit.determined[j]) fit.moves[j] = 0;
  }
  return fit;
}

}  // namespace orrery::tools
