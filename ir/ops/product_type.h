#ifndef ORRERY_IR_OPS_PRODUCT_TYPE_H_
#define ORRERY_IR_OPS_PRODUCT_TYPE_H_

#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "ir/builder.h"
#include "ir/op_info.h"

// The attribute `out` of matrix products: the element type that they write, where it is not that of
// their operands. Products of numbers of 8 or 4 bits are summed up in fp32 and written in 16 bits.

namespace orrery::ir {

/// The element type of the results of a product whose operands are of `operands`.
inline DType ProductType(const AttributeSet& attributes, DType operands) {
  const std::string out = attributes.String("out", "");
  return out.empty() ? operands : ParseDType(out).value_or(operands);
}

/// Gives all results, so far of the type of the operands, the one that `out` asks for; an error
/// where either is no floating-point type.
inline absl::Status SetProductType(const AttributeSet& attributes, TypeList& results) {
  const std::string out = attributes.String("out", "");
  if (out.empty()) return absl::OkStatus();
  const std::optional<DType> dtype = ParseDType(out);
  if (!dtype.has_value() || !IsFloat(*dtype)) {
    return absl::InvalidArgumentError(
        absl::StrCat("out=\"", out, "\"; wanted a floating-point type such as \"bf16\""));
  }
  for (TensorType& result : results) {
    if (!IsFloat(result.dtype)) {
      return absl::InvalidArgumentError(absl::StrCat("operands are of ", ToString(result.dtype),
                                                     " with out=\"", out,
                                                     "\"; wanted floating point"));
    }
    result.dtype = *dtype;
  }
  return absl::OkStatus();
}

/// An error where the product writes another type than it reads: its operands are copies, and
/// gradients are for what they were made from.
inline absl::Status CheckDifferentiable(const GradientContext& c) {
  if (c.attributes().Find("out") == nullptr) return absl::OkStatus();
  return absl::UnimplementedError(
      "reads copies of its operands and has no gradient rule; wanted build-backward before "
      "fp8-mixed");
}

}  // namespace orrery::ir

#endif  // ORRERY_IR_OPS_PRODUCT_TYPE_H_
