#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>

#include "ir/op_info.h"
#include "ir/ops/unary_record.h"

// What stands between the layers of networks: functions of one number with a kink or a bend. What a
// gradient keeps is what it keeps in PyTorch, so that memory is as it is there.

namespace orrery::ir {
namespace activation_cc {
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

// The sigmoid form of the same paper, as CLIP has it.
constexpr double kGeluSigmoid = 1.702;

double GeluValue(double x, P p) {
  if (p[0] == 2) return x * Logistic(kGeluSigmoid * x);
  return p[0] != 0 ? 0.5 * x * (1 + GeluTanh(x)) : x * NormalCdf(x);
}

double GeluSlope(double x, P p) {
  if (p[0] == 0) {
    return NormalCdf(x) + x * std::exp(-x * x / 2) / std::sqrt(2 * std::numbers::pi);
  }
  if (p[0] == 2) {
    const double gate = Logistic(kGeluSigmoid * x);
    return gate + kGeluSigmoid * x * gate * (1 - gate);
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

constexpr double kInfinity = std::numeric_limits<double>::infinity();

constexpr UnaryFunction kFunctions[] = {
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
     .slope = [](double x, P p) { return x > p[0] && x < p[1] ? 1.0 : 0.0; },  // of y, too
     .flops = 2},
    {.name = "Elu",
     .summary = "x where x > 0, else alpha (exp(x) - 1)",
     .parameters = {{{"alpha", 1.0}}},
     .value = [](double x, P p) { return x > 0 ? x : p[0] * std::expm1(x); },
     .slope = [](double x, P p) { return x > 0 ? 1.0 : p[0] * std::exp(x); },
     .flops = kExpFlops + 2},
    {.name = "Gelu",
     .summary =
         "x times the normal distribution's P(X <= x); approximate=\"tanh\" for its tanh form, "
         "\"sigmoid\" for x sigmoid(1.702 x)",
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
    {.name = "Mish",
     .summary = "x tanh(softplus(x))",
     .value = [](double x, P) { return x * std::tanh(SoftplusOf(x)); },
     .slope = MishSlope,
     .flops = 3 * kExpFlops + 1},
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
    {.name = "Silu",
     .summary = "x / (1 + exp(-x)), also called Swish",
     .value = [](double x, P) { return x * Logistic(x); },
     .slope = SiluSlope,
     .flops = kExpFlops + 3},
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
    {.name = "SquaredRelu",
     .summary = "x squared where x > 0, else 0",
     .value = [](double x, P) { return x > 0 ? x * x : 0.0; },
     .slope = [](double x, P) { return x > 0 ? 2 * x : 0.0; },
     .flops = 2},
    {.name = "ThresholdedRelu",
     .summary = "x where x > alpha, else 0",
     .parameters = {{{"alpha", 1.0}}},
     .value = [](double x, P p) { return x > p[0] ? x : 0.0; },
     .slope = [](double x, P p) { return x > p[0] ? 1.0 : 0.0; }},
};

consteval size_t Row(absl::string_view name) { return RowOf<kFunctions>(name); }

template <size_t row>
constexpr OpInfo Record() {
  return UnaryRecord<kFunctions, row>();
}

}  // namespace
}  // namespace activation_cc

std::span<const UnaryFunction> ActivationFunctions() { return activation_cc::kFunctions; }

extern const OpInfo kCeluOp = activation_cc::Record<activation_cc::Row("Celu")>();
extern const OpInfo kClipOp = activation_cc::Record<activation_cc::Row("Clip")>();
extern const OpInfo kEluOp = activation_cc::Record<activation_cc::Row("Elu")>();
extern const OpInfo kGeluOp = activation_cc::Record<activation_cc::Row("Gelu")>();
extern const OpInfo kHardSigmoidOp = activation_cc::Record<activation_cc::Row("HardSigmoid")>();
extern const OpInfo kHardSwishOp = activation_cc::Record<activation_cc::Row("HardSwish")>();
extern const OpInfo kLeakyReluOp = activation_cc::Record<activation_cc::Row("LeakyRelu")>();
extern const OpInfo kMishOp = activation_cc::Record<activation_cc::Row("Mish")>();
extern const OpInfo kSeluOp = activation_cc::Record<activation_cc::Row("Selu")>();
extern const OpInfo kShrinkOp = activation_cc::Record<activation_cc::Row("Shrink")>();
extern const OpInfo kSigmoidOp = activation_cc::Record<activation_cc::Row("Sigmoid")>();
extern const OpInfo kSiluOp = activation_cc::Record<activation_cc::Row("Silu")>();
extern const OpInfo kSoftplusOp = activation_cc::Record<activation_cc::Row("Softplus")>();
extern const OpInfo kSoftsignOp = activation_cc::Record<activation_cc::Row("Softsign")>();
extern const OpInfo kSquaredReluOp = activation_cc::Record<activation_cc::Row("SquaredRelu")>();
extern const OpInfo kThresholdedReluOp =
    activation_cc::Record<activation_cc::Row("ThresholdedRelu")>();

}  // namespace orrery::ir
