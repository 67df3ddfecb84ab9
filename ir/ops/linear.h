#ifndef ORRERY_IR_OPS_LINEAR_H_
#define ORRERY_IR_OPS_LINEAR_H_

#include <cmath>

#include "absl/strings/string_view.h"

// The activations that the kernel of Linear can do itself before it writes its result.

namespace orrery::ir {

/// Whether Linear knows the activation: "" for none, "relu", "gelu", "gelu_tanh", "silu".
inline bool IsLinearActivation(absl::string_view name) {
  return name.empty() || name == "relu" || name == "gelu" || name == "gelu_tanh" || name == "silu";
}

/// Whether the gradient needs what the activation is applied to; Relu's takes its result.
inline bool SavesInput(absl::string_view activation) {
  return !activation.empty() && activation != "relu";
}

/// The activation of one element.
inline double LinearActivation(absl::string_view name, double x) {
  if (name == "relu") return x > 0 ? x : 0.0;
  if (name == "silu") return x / (1 + std::exp(-x));
  if (name == "gelu") return 0.5 * x * (1 + std::erf(x * M_SQRT1_2));
  if (name == "gelu_tanh") {
    return 0.5 * x * (1 + std::tanh(std::sqrt(2 / M_PI) * (x + 0.044715 * x * x * x)));
  }
  return x;
}

}  // namespace orrery::ir

#endif  // ORRERY_IR_OPS_LINEAR_H_
