#ifndef ORRERY_SIMULATOR_JITTER_DISTRIBUTION_H_
#define ORRERY_SIMULATOR_JITTER_DISTRIBUTION_H_

#include <cstdint>
#include <span>

#include "absl/strings/string_view.h"

// By how much something takes longer than it should: a factor that is drawn. Each distribution has
// one parameter, its spread: the standard deviation of the factor. It is drawn by inverting the
// probability that the factor is exceeded, so that one uniform number is one draw, and the largest
// of n draws is as cheap as one.

namespace orrery::simulator {

/// A family of distributions of factors, by their spread.
struct JitterDistribution {
  absl::string_view name;     // "lognormal"
  absl::string_view summary;  // what it is for, in a sentence
  double most_spread;         // beyond, factors would be below 0, or the tail too long to mean much
  /// The factor that is exceeded with probability `q`, more than 0 and less than 1.
  double (*exceeded)(double q, double spread);
  double (*mean)(double spread);  // of the factor
};

/// All of them; the first is the usual one.
std::span<const JitterDistribution> AllJitterDistributions();

/// The one of that name; null: none.
const JitterDistribution* FindJitterDistribution(absl::string_view name);

/// A distribution with its spread. Requires 0 < spread <= of->most_spread.
struct Spread {
  const JitterDistribution* of = nullptr;
  double spread = 0;

  /// The factor of a uniform number between 0 and 1.
  double Factor(double uniform) const { return of->exceeded(uniform, spread); }
};

/// Of a uniform number, that by which the largest of `n` independent draws is drawn: all are at
/// most x with probability F(x)^n, so it is exceeded with 1 - (1 - q)^(1/n) (David & Nagaraja,
/// Order Statistics, 2003, section 2.1). n >= 1.
double ExceededByLargest(double uniform, int64_t n);

/// The expected largest of `n` draws, by the integral of its quantiles: to about one part in 10^5
/// of the spread. n >= 1.
double ExpectedLargest(const Spread& spread, int64_t n);

/// The number that a standard normal variable exceeds with probability `q`, 0 < q < 1: Wichura's
/// algorithm AS 241 (PPND16, Applied Statistics 37, 1988), to one part in 10^15.
double NormalExceeded(double q);

}  // namespace orrery::simulator

#endif  // ORRERY_SIMULATOR_JITTER_DISTRIBUTION_H_
