#ifndef ORRERY_IR_OPS_UNARY_FUNCTIONS_H_
#define ORRERY_IR_OPS_UNARY_FUNCTIONS_H_

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <iterator>
#include <limits>
#include <numbers>

#include "ir/ops/pointwise.h"
#include "ir/ops/unary.h"

// The table of unary functions. Only unary.cc includes it.

namespace orrery::ir {
namespace {

using P = const UnaryParameters&;

double Logistic(double x) { return 1 / (1 + std::exp(-x)); }
double SoftplusOf(double x) { return std::max(x, 0.0) + std::log1p(std::exp(-std::abs(x))); }
double NormalCdf(double x) { return 0.5 * std::erfc(-x / std::numbers::sqrt2); }

// The tanh form of Gelu (Hendrycks & Gimpel 2016).
constexpr double kGeluCubic = 0.044715;
double GeluTanh(double x) {
  return std::tanh(std::sqrt(2 / std::numbers::pi) * (x + kGeluCubic * x * x * x));
}

double GeluValue(double x, P p) {
  return p[0] != 0 ? 0.5 * x * (1 + GeluTanh(x)) : x * NormalCdf(x);
}

double GeluSlope(double x, P p) {
  if (p[0] == 0) {
    return NormalCdf(x) + x * std::exp(-x * x / 2) / std::sqrt(2 * std::numbers::pi);
  }
  const double t = GeluTanh(x);
  const double inner = std::sqrt(2 / std::numbers::pi) * (1 + 3 * kGeluCubic * x * x);
  return 0.5 * (1 + t) + 0.5 * x * (1 - t * t) * inner;
}

double MishSlope(double x, P) {
  const double t = std::tanh(SoftplusOf(x));
  return t + x * (1 - t * t) * Logistic(x);
}

double SiluSlope(double x, P) { return Logistic(x) * (1 + x * (1 - Logistic(x))); }

double HardSigmoidValue(double x, P p) { return std::clamp(p[0] * x + p[1], 0.0, 1.0); }
double HardSigmoidSlope(double x, P p) {
  const double line = p[0] * x + p[1];
  return line > 0 && line < 1 ? p[0] : 0.0;
}

double HardSwishSlope(double x, P) {
  if (x <= -3) return 0;
  return x >= 3 ? 1 : x / 3 + 0.5;
}

double ShrinkValue(double x, P p) {
  if (x < -p[0]) return x + p[1];
  return x > p[0] ? x - p[1] : 0.0;
}

// The signs of zero and of no number stay.
double SignOf(double x) { return x > 0 ? 1 : x < 0 ? -1 : x; }

constexpr double kInfinity = std::numeric_limits<double>::infinity();

// Sorted by name.
constexpr UnaryFunction kUnaryFunctions[] = {
    {.name = "Abs",
     .summary = "the magnitude of x",
     .value = [](double x, P) { return std::abs(x); },
     .slope = [](double x, P) { return SignOf(x); },
     .whole =
         [](int64_t x) { return x < 0 ? static_cast<int64_t>(-static_cast<uint64_t>(x)) : x; }},
    {.name = "Acos",
     .summary = "the angle whose cosine is x",
     .value = [](double x, P) { return std::acos(x); },
     .slope = [](double x, P) { return -1 / std::sqrt(1 - x * x); },
     .flops = kExpFlops},
    {.name = "Acosh",
     .summary = "inverse hyperbolic cosine of x",
     .value = [](double x, P) { return std::acosh(x); },
     .slope = [](double x, P) { return 1 / std::sqrt(x * x - 1); },
     .flops = kExpFlops},
    {.name = "Asin",
     .summary = "the angle whose sine is x",
     .value = [](double x, P) { return std::asin(x); },
     .slope = [](double x, P) { return 1 / std::sqrt(1 - x * x); },
     .flops = kExpFlops},
    {.name = "Asinh",
     .summary = "inverse hyperbolic sine of x",
     .value = [](double x, P) { return std::asinh(x); },
     .slope = [](double x, P) { return 1 / std::sqrt(x * x + 1); },
     .flops = kExpFlops},
    {.name = "Atan",
     .summary = "the angle whose tangent is x",
     .value = [](double x, P) { return std::atan(x); },
     .slope = [](double x, P) { return 1 / (x * x + 1); },
     .flops = kExpFlops},
    {.name = "Atanh",
     .summary = "inverse hyperbolic tangent of x",
     .value = [](double x, P) { return std::atanh(x); },
     .slope = [](double x, P) { return 1 / (1 - x * x); },
     .flops = kExpFlops},
    {.name = "Ceil",
     .summary = "the least whole number that is not below x",
     .value = [](double x, P) { return std::ceil(x); }},
    {.name = "Celu",
     .summary = "max(0, x) + min(0, alpha (exp(x / alpha) - 1))",
     .parameters = {{{"alpha", 1.0}}},
     .value = [](double x, P p) { return x > 0 ? x : p[0] * std::expm1(x / p[0]); },
     .slope = [](double x, P p) { return x > 0 ? 1.0 : std::exp(x / p[0]); },
     .flops = kExpFlops + 3},
    {.name = "Clip",
     .summary = "x between `min` and `max`",
     .parameters = {{{"min", -kInfinity}, {"max", kInfinity}}},
     .value = [](double x, P p) { return std::min(std::max(x, p[0]), p[1]); },
     .slope = [](double x, P p) { return x >= p[0] && x <= p[1] ? 1.0 : 0.0; },
     .flops = 2},
    {.name = "Cos",
     .summary = "cosine of x",
     .value = [](double x, P) { return std::cos(x); },
     .slope = [](double x, P) { return -std::sin(x); },
     .flops = kExpFlops},
    {.name = "Cosh",
     .summary = "hyperbolic cosine of x",
     .value = [](double x, P) { return std::cosh(x); },
     .slope = [](double x, P) { return std::sinh(x); },
     .flops = kExpFlops},
    {.name = "Elu",
     .summary = "x where x > 0, else alpha (exp(x) - 1)",
     .parameters = {{{"alpha", 1.0}}},
     .value = [](double x, P p) { return x > 0 ? x : p[0] * std::expm1(x); },
     .slope = [](double x, P p) { return x > 0 ? 1.0 : p[0] * std::exp(x); },
     .flops = kExpFlops + 2},
    {.name = "Erf",
     .summary = "the error function of x",
     .value = [](double x, P) { return std::erf(x); },
     .slope = [](double x, P) { return 2 * std::numbers::inv_sqrtpi * std::exp(-x * x); },
     .flops = kExpFlops},
    {.name = "Exp",
     .summary = "e to the x",
     .value = [](double x, P) { return std::exp(x); },
     .slope = [](double y, P) { return y; },
     .saves_result = true,
     .flops = kExpFlops},
    {.name = "Floor",
     .summary = "the greatest whole number that is not above x",
     .value = [](double x, P) { return std::floor(x); }},
    {.name = "Gelu",
     .summary =
         "x times the normal distribution's P(X <= x); approximate=\"tanh\" for its tanh form",
     .parameters = {{{"approximate", 0.0}}},
     .value = GeluValue,
     .slope = GeluSlope,
     .flops = kExpFlops + 4},
    {.name = "HardSigmoid",
     .summary = "alpha x + beta between 0 and 1",
     .parameters = {{{"alpha", 0.2}, {"beta", 0.5}}},
     .value = HardSigmoidValue,
     .slope = HardSigmoidSlope,
     .flops = 4},
    {.name = "HardSwish",
     .summary = "x times (x / 6 + 1/2 between 0 and 1)",
     .value = [](double x, P) { return x * std::clamp(x / 6 + 0.5, 0.0, 1.0); },
     .slope = HardSwishSlope,
     .flops = 5},
    {.name = "LeakyRelu",
     .summary = "x where x >= 0, else alpha x",
     .parameters = {{{"alpha", 0.01}}},
     .value = [](double x, P p) { return x >= 0 ? x : p[0] * x; },
     .slope = [](double x, P p) { return x > 0 ? 1.0 : p[0]; },
     .flops = 2},
    {.name = "Log",
     .summary = "natural logarithm of x",
     .value = [](double x, P) { return std::log(x); },
     .slope = [](double x, P) { return 1 / x; },
     .flops = kExpFlops},
    {.name = "Mish",
     .summary = "x tanh(softplus(x))",
     .value = [](double x, P) { return x * std::tanh(SoftplusOf(x)); },
     .slope = MishSlope,
     .flops = 3 * kExpFlops + 1},
    {.name = "Reciprocal",
     .summary = "1 / x",
     .value = [](double x, P) { return 1 / x; },
     .slope = [](double y, P) { return -y * y; },
     .saves_result = true},
    {.name = "Round",
     .summary = "the whole number nearest to x; of two, the even one",
     .value = [](double x, P) { return std::nearbyint(x); }},
    {.name = "Rsqrt",
     .summary = "1 over the square root of x",
     .value = [](double x, P) { return 1 / std::sqrt(x); },
     .slope = [](double y, P) { return -0.5 * y * y * y; },
     .saves_result = true,
     .flops = kExpFlops},
    {.name = "Selu",
     .summary = "gamma times (x where x > 0, else alpha (exp(x) - 1))",
     .parameters = {{{"alpha", 1.67326319217681884765625}, {"gamma", 1.05070102214813232421875}}},
     .value = [](double x, P p) { return p[1] * (x > 0 ? x : p[0] * std::expm1(x)); },
     .slope = [](double x, P p) { return p[1] * (x > 0 ? 1.0 : p[0] * std::exp(x)); },
     .flops = kExpFlops + 3},
    {.name = "Shrink",
     .summary = "x moved towards 0 by `bias` where |x| > lambd, else 0",
     .parameters = {{{"lambd", 0.5}, {"bias", 0.0}}},
     .value = ShrinkValue,
     .slope = [](double x, P p) { return std::abs(x) > p[0] ? 1.0 : 0.0; },
     .flops = 3},
    {.name = "Sigmoid",
     .summary = "1 / (1 + exp(-x))",
     .value = [](double x, P) { return Logistic(x); },
     .slope = [](double y, P) { return y * (1 - y); },
     .saves_result = true,
     .flops = kExpFlops + 2},
    {.name = "Sign",
     .summary = "-1, 0 or 1 as x is negative, zero or positive",
     .value = [](double x, P) { return SignOf(x); },
     .whole = [](int64_t x) { return int64_t{x > 0} - int64_t{x < 0}; }},
    {.name = "Silu",
     .summary = "x / (1 + exp(-x)), also called Swish",
     .value = [](double x, P) { return x * Logistic(x); },
     .slope = SiluSlope,
     .flops = kExpFlops + 3},
    {.name = "Sin",
     .summary = "sine of x",
     .value = [](double x, P) { return std::sin(x); },
     .slope = [](double x, P) { return std::cos(x); },
     .flops = kExpFlops},
    {.name = "Sinh",
     .summary = "hyperbolic sine of x",
     .value = [](double x, P) { return std::sinh(x); },
     .slope = [](double x, P) { return std::cosh(x); },
     .flops = kExpFlops},
    {.name = "Softplus",
     .summary = "log(1 + exp(x))",
     .value = [](double x, P) { return SoftplusOf(x); },
     .slope = [](double x, P) { return Logistic(x); },
     .flops = 2 * kExpFlops + 1},
    {.name = "Softsign",
     .summary = "x / (1 + |x|)",
     .value = [](double x, P) { return x / (1 + std::abs(x)); },
     .slope = [](double x, P) { return 1 / ((1 + std::abs(x)) * (1 + std::abs(x))); },
     .flops = 3},
    {.name = "Sqrt",
     .summary = "square root of x",
     .value = [](double x, P) { return std::sqrt(x); },
     .slope = [](double y, P) { return 0.5 / y; },
     .saves_result = true,
     .flops = kExpFlops},
    {.name = "Tan",
     .summary = "tangent of x",
     .value = [](double x, P) { return std::tan(x); },
     .slope = [](double y, P) { return 1 + y * y; },
     .saves_result = true,
     .flops = kExpFlops},
    {.name = "Tanh",
     .summary = "hyperbolic tangent of x",
     .value = [](double x, P) { return std::tanh(x); },
     .slope = [](double y, P) { return 1 - y * y; },
     .saves_result = true,
     .flops = kExpFlops},
    {.name = "ThresholdedRelu",
     .summary = "x where x > alpha, else 0",
     .parameters = {{{"alpha", 1.0}}},
     .value = [](double x, P p) { return x > p[0] ? x : 0.0; },
     .slope = [](double x, P p) { return x > p[0] ? 1.0 : 0.0; }},
};

// The row of that name; there is one, or the program does not compile.
consteval size_t RowOf(absl::string_view name) {
  size_t row = 0;
  while (kUnaryFunctions[row].name != name) ++row;
  return row;
}

}  // namespace
}  // namespace orrery::ir

#endif  // ORRERY_IR_OPS_UNARY_FUNCTIONS_H_
