#ifndef ORRERY_TOOLS_VALIDATION_ROBUST_FIT_H_
#define ORRERY_TOOLS_VALIDATION_ROBUST_FIT_H_

#include <cstdint>
#include <functional>
#include <vector>

// Unknowns from rows, robustly: a row whose error is far beyond those of its group counts little
// (Huber, "Robust Estimation of a Location Parameter", 1964), and an unknown that no row tells much
// about stays where it starts.

namespace orrery::tools {

/// How an unknown may move from its start, in units in which a move of 1 is as much as one would
/// expect it to be wrong.
struct UnknownRange {
  double least = -1, most = 1;
};

/// What is known of rows near some moves.
struct FitRows {
  std::vector<double> errors;               // of each row, as logarithms
  std::vector<std::vector<double>> slopes;  // of each row, by each unknown
  std::vector<int32_t> groups;              // from 0: rows of one have one spread
};

/// So many fields: what a fit tells of itself.
struct RobustFit {
  std::vector<double> moves;
  std::vector<bool> determined;  // where not, the move is 0
  std::vector<double> deviations;
  /// Of each two unknowns that are determined and within their ranges; 0 else.
  std::vector<std::vector<double>> correlations;
  std::vector<double> spreads;  // of each group
};

/// How much is wrong of rows with such errors after such moves, by those spreads. Less is better.
double LossOf(const std::vector<double>& errors, const FitRows& rows,
              const std::vector<double>& spreads, const std::vector<double>& moves);

/// The moves of least loss where errors go with slopes from those of `rows` at `from`; spreads are
/// 1.48 times the median absolute error, no less than `least_spread`. An unknown is determined
/// where its deviation is at most half of what it may move; the one of which least is known is
/// left at its start first.
RobustFit SolveRobustly(const FitRows& rows, const std::vector<double>& from,
                        const std::vector<UnknownRange>& ranges, double least_spread);

/// Errors of all rows, as logarithms, after such moves.
using ErrorsOf = std::function<std::vector<double>(const std::vector<double>& moves)>;
/// Of each row its slopes there, given the errors there.
using SlopesOf = std::function<std::vector<std::vector<double>>(const std::vector<double>& moves,
                                                                const std::vector<double>& errors)>;

/// What a fit asks. So few rounds, for rows are simulated.
struct FitProblem {
  ErrorsOf errors;
  SlopesOf slopes;
  std::vector<int32_t> groups;
  std::vector<UnknownRange> ranges;
  double least_spread = 0.01;
  int32_t rounds = 6;
};

/// Solves again and again from where the last answer leads, with the slopes of the start corrected
/// by what moves have done (Broyden 1965), and once with new ones where that is far away. A move
/// that makes the loss larger is halved. At most `rounds` + 8 rounds of errors, and two of slopes.
RobustFit FitRobustly(const FitProblem& problem);

}  // namespace orrery::tools

#endif  // ORRERY_TOOLS_VALIDATION_ROBUST_FIT_H_
