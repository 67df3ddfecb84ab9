#include "simulator/jitter/distribution.h"

#include <algorithm>
#include <array>
#include <cmath>

namespace orrery::simulator {
namespace distribution_cc {
namespace {

template <size_t n>
double Polynomial(const std::array<double, n>& of, double x) {
  double sum = 0;
  for (size_t i = n; i > 0; --i) sum = sum * x + of[i - 1];
  return sum;
}

// At 4 deviations 1 is 0: a draw in 30,000 is below.
double Normal(double q, double spread) { return std::max(0.0, 1 + spread * NormalExceeded(q)); }

double Lognormal(double q, double spread) {
  const double variance = std::log1p(spread * spread);
  return std::exp(std::sqrt(variance) * NormalExceeded(q) - variance / 2);
}

double Uniform(double q, double spread) { return 1 + spread * std::sqrt(3.0) * (1 - 2 * q); }

double Exponential(double q, double spread) { return 1 - spread * std::log(q); }

double One(double) { return 1; }

constexpr std::array kDistributions = {
    JitterDistribution{.name = "normal",
                       .summary = "1 + spread · N(0, 1): as often faster as slower; mean 1",
                       .most_spread = 0.25,
                       .exceeded = Normal,
                       .mean = One},
    JitterDistribution{.name = "lognormal",
                       .summary = "exp(s · N(0, 1) - s² / 2), s² = ln(1 + spread²): a longer tail "
                                  "of slow ones; mean 1",
                       .most_spread = 10,
                       .exceeded = Lognormal,
                       .mean = One},
    JitterDistribution{.name = "uniform",
                       .summary = "between 1 - √3 · spread and 1 + √3 · spread; mean 1",
                       .most_spread = 0.577,
                       .exceeded = Uniform,
                       .mean = One},
    JitterDistribution{.name = "exponential",
                       .summary = "1 + spread · Exp(1): delays, which only slow down; mean 1 + "
                                  "spread",
                       .most_spread = 10,
                       .exceeded = Exponential,
                       .mean = [](double spread) { return 1 + spread; }},
};

}  // namespace
}  // namespace distribution_cc

std::span<const JitterDistribution> AllJitterDistributions() {
  return distribution_cc::kDistributions;
}

const JitterDistribution* FindJitterDistribution(absl::string_view name) {
  for (const JitterDistribution& each : distribution_cc::kDistributions) {
    if (each.name == name) return &each;
  }
  return nullptr;
}

double ExceededByLargest(double uniform, int64_t n) {
  if (n == 1) return uniform;
  return -std::expm1(std::log1p(-uniform) / static_cast<double>(n));
}

// E = ∫ x(u) du over the quantiles of the largest. Substituting u = t³ (10 - 15 t + 6 t²) takes the
// poles at both ends away; the midpoint rule of so smooth a function ends quickly.
double ExpectedLargest(const Spread& spread, int64_t n) {
  constexpr int kPoints = 4096;
  double sum = 0;
  for (int i = 0; i < kPoints; ++i) {
    const double t = (i + 0.5) / kPoints;
    const double u = t * t * t * (10 + t * (6 * t - 15));
    const double weight = 30 * t * t * (1 - t) * (1 - t);
    sum += weight * spread.Factor(ExceededByLargest(u, n));
  }
  return sum / kPoints;
}

double NormalExceeded(double q) {
  constexpr std::array kMiddle = {3.3871328727963666080e0,  1.3314166789178437745e+2,
                                  1.9715909503065514427e+3, 1.3731693765509461125e+4,
                                  4.5921953931549871457e+4, 6.7265770927008700853e+4,
                                  3.3430575583588128105e+4, 2.5090809287301226727e+3};
  constexpr std::array kUnderMiddle = {1.0,
                                       4.2313330701600911252e+1,
                                       6.8718700749205790830e+2,
                                       5.3941960214247511077e+3,
                                       2.1213794301586595867e+4,
                                       3.9307895800092710610e+4,
                                       2.8729085735721942674e+4,
                                       5.2264952788528545610e+3};
  constexpr std::array kNear = {1.42343711074968357734e0,  4.63033784615654529590e0,
                                5.76949722146069140550e0,  3.64784832476320460504e0,
                                1.27045825245236838258e0,  2.41780725177450611770e-1,
                                2.27238449892691845833e-2, 7.74545014278341407640e-4};
  constexpr std::array kUnderNear = {1.0,
                                     2.05319162663775882187e0,
                                     1.67638483018380384940e0,
                                     6.89767334985100004550e-1,
                                     1.48103976427480074590e-1,
                                     1.51986665636164571966e-2,
                                     5.47593808499534494600e-4,
                                     1.05075007164441684324e-9};
  constexpr std::array kFar = {6.65790464350110377720e0,  5.46378491116411436990e0,
                               1.78482653991729133580e0,  2.96560571828504891230e-1,
                               2.65321895265761230930e-2, 1.24266094738807843860e-3,
                               2.71155556874348757815e-5, 2.01033439929228813265e-7};
  constexpr std::array kUnderFar = {1.0,
                                    5.99832206555887937690e-1,
                                    1.36929880922735805310e-1,
                                    1.48753612908506148525e-2,
                                    7.86869131145613259100e-4,
                                    1.84631831751005468180e-5,
                                    1.42151175831644588870e-7,
                                    2.04426310338993978564e-15};
  using distribution_cc::Polynomial;
  const double middle = 0.5 - q;
  if (std::abs(middle) <= 0.425) {
    const double r = 0.180625 - middle * middle;
    return middle * Polynomial(kMiddle, r) / Polynomial(kUnderMiddle, r);
  }
  double r = std::sqrt(-std::log(std::min(q, 1 - q)));
  double z;
  if (r <= 5) {
    r -= 1.6;
    z = Polynomial(kNear, r) / Polynomial(kUnderNear, r);
  } else {
    r -= 5;
    z = Polynomial(kFar, r) / Polynomial(kUnderFar, r);
  }
  return q < 0.5 ? z : -z;
}

}  // namespace orrery::simulator
