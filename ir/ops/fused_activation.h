#ifndef ORRERY_IR_OPS_FUSED_ACTIVATION_H_
#define ORRERY_IR_OPS_FUSED_ACTIVATION_H_

#include <algorithm>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "ir/builder.h"
#include "ir/op_info.h"
#include "ir/op_kind.h"

// The attribute `activation` of convolutions and batch norms: "relu", or "relu6", which is cut off
// at 6. Backward needs the result alone, which the next op keeps anyhow.

namespace orrery::ir {

inline constexpr double kRelu6Limit = 6;

inline bool HasActivation(const AttributeSet& attributes) {
  return !attributes.String("activation", "").empty();
}

inline absl::Status CheckActivation(const AttributeSet& attributes) {
  const std::string name = attributes.String("activation", "");
  if (name.empty() || name == "relu" || name == "relu6") return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("activation \"", name, "\" is unknown; wanted \"relu\", \"relu6\" or none"));
}

/// Applies the activation to `value`.
template <typename T>
T Activated(const AttributeSet& attributes, T value) {
  const std::string name = attributes.String("activation", "");
  if (name.empty()) return value;
  value = std::max(value, T{0});
  return name == "relu6" ? std::min(value, static_cast<T>(kRelu6Limit)) : value;
}

/// `dy`, the gradient of result 0, before the activation.
inline ValueId BeforeActivation(GradientContext& c, ValueId dy) {
  const std::string name = c.attributes().String("activation", "");
  if (name.empty()) return dy;
  if (name == "relu") return c.builder().ReluGrad(c.result(0), dy);
  return c.builder().Op(OpKind::kUnaryGrad, {c.result(0), dy}, "",
                        {{"of", std::string("Clip")}, {"min", 0.0}, {"max", kRelu6Limit}});
}

}  // namespace orrery::ir

#endif  // ORRERY_IR_OPS_FUSED_ACTIVATION_H_
