#include "ir/ops/recurrent_activation.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

namespace orrery::ir {
namespace recurrent_activation_cc {
namespace {

// In the order of Activation::Kind; the numbers are those of the operators of the same names.
constexpr std::array<ActivationDefaults, 11> kActivations = {
    {{.name = "Sigmoid"},
     {.name = "Tanh"},
     {.name = "Relu"},
     {.name = "Affine", .takes_alpha = true, .takes_beta = true, .alpha = 1, .beta = 0},
     {.name = "LeakyRelu", .takes_alpha = true, .alpha = 0.01},
     {.name = "ThresholdedRelu", .takes_alpha = true, .alpha = 1},
     {.name = "ScaledTanh", .takes_alpha = true, .takes_beta = true, .alpha = 1, .beta = 1},
     {.name = "HardSigmoid", .takes_alpha = true, .takes_beta = true, .alpha = 0.2, .beta = 0.5},
     {.name = "Elu", .takes_alpha = true, .alpha = 1},
     {.name = "Softsign"},
     {.name = "Softplus"}}};

}  // namespace
}  // namespace recurrent_activation_cc

const ActivationDefaults* FindActivation(absl::string_view name) {
  const auto* found = std::find_if(
      recurrent_activation_cc::kActivations.begin(), recurrent_activation_cc::kActivations.end(),
      [name](const ActivationDefaults& d) { return absl::EqualsIgnoreCase(d.name, name); });
  return found == recurrent_activation_cc::kActivations.end() ? nullptr : found;
}

absl::StatusOr<Activation> Activation::Named(absl::string_view name, double alpha, double beta) {
  const ActivationDefaults* found = FindActivation(name);
  if (found == nullptr) {
    return absl::InvalidArgumentError(absl::StrCat("activation \"", name, "\" is unknown"));
  }
  Activation activation;
  activation.kind_ = static_cast<Kind>(found - recurrent_activation_cc::kActivations.data());
  activation.alpha_ = alpha;
  activation.beta_ = beta;
  return activation;
}

double Activation::operator()(double x) const {
  switch (kind_) {
    case Kind::kSigmoid:
      return 1 / (1 + std::exp(-x));
    case Kind::kTanh:
      return std::tanh(x);
    case Kind::kRelu:
      return std::max(x, 0.0);
    case Kind::kAffine:
      return alpha_ * x + beta_;
    case Kind::kLeakyRelu:
      return x >= 0 ? x : alpha_ * x;
    case Kind::kThresholdedRelu:
      return x > alpha_ ? x : 0;
    case Kind::kScaledTanh:
      return alpha_ * std::tanh(beta_ * x);
    case Kind::kHardSigmoid:
      return std::clamp(alpha_ * x + beta_, 0.0, 1.0);
    case Kind::kElu:
      return x >= 0 ? x : alpha_ * std::expm1(x);
    case Kind::kSoftsign:
      return x / (1 + std::abs(x));
    case Kind::kSoftplus:
      return x > 0 ? x + std::log1p(std::exp(-x)) : std::log1p(std::exp(x));
  }
  return x;
}

double Activation::Derivative(double y) const {
  switch (kind_) {
    case Kind::kSigmoid:
      return y * (1 - y);
    case Kind::kTanh:
      return 1 - y * y;
    case Kind::kRelu:
      return y > 0 ? 1 : 0;
    case Kind::kAffine:
      return alpha_;
    case Kind::kLeakyRelu:
      return y >= 0 ? 1 : alpha_;
    case Kind::kThresholdedRelu:
      return y != 0 ? 1 : 0;
    case Kind::kScaledTanh:
      return alpha_ == 0 ? 0 : beta_ * (alpha_ - y * y / alpha_);
    case Kind::kHardSigmoid:
      return y > 0 && y < 1 ? alpha_ : 0;
    case Kind::kElu:
      return y >= 0 ? 1 : y + alpha_;
    case Kind::kSoftsign:
      return (1 - std::abs(y)) * (1 - std::abs(y));
    case Kind::kSoftplus:
      return -std::expm1(-y);
  }
  return 1;
}

}  // namespace orrery::ir
