#ifndef ORRERY_IR_OPS_UNARY_H_
#define ORRERY_IR_OPS_UNARY_H_

#include <array>
#include <cstdint>
#include <span>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "ir/attributes.h"

namespace orrery::ir {

class GradientContext;
struct Evaluation;

/// The values of the attributes of a unary function, in the order in which it names them.
using UnaryParameters = std::array<double, 2>;

/// An attribute of a unary function, and its value when it is absent.
struct UnaryParameter {
  absl::string_view name;  // empty: none
  double fallback = 0;
};

/// A function of one number, and its derivative in terms of what backward keeps.
struct UnaryFunction {
  absl::string_view name;
  absl::string_view summary;
  std::array<UnaryParameter, 2> parameters = {};
  double (*value)(double x, const UnaryParameters& p) = nullptr;
  /// Null: the derivative is zero almost everywhere, and no gradient flows.
  double (*slope)(double saved, const UnaryParameters& p) = nullptr;
  /// `slope` is given y instead of x. As in PyTorch, so that memory is as it is there.
  bool saves_result = false;
  /// The function on whole numbers, if it is defined on them.
  int64_t (*whole)(int64_t x) = nullptr;
  int flops = 1;  // an element; see pointwise.h
};

/// The function that the op kind of that name computes; null when there is none.
const UnaryFunction* FindUnaryFunction(absl::string_view name);

/// What `attributes` say about the parameters of `function`. approximate="tanh" reads as 1,
/// "sigmoid" as 2.
UnaryParameters ReadParameters(const UnaryFunction& function, const AttributeSet& attributes);

// For the records.

/// The functions of activation.cc.
std::span<const UnaryFunction> ActivationFunctions();
/// Computes the result of a function that has `whole`, on whole numbers.
absl::Status EvaluateWhole(const UnaryFunction& f, Evaluation& e);
/// The gradient of an op that computes `f`, as one UnaryGrad.
absl::Status UnaryGradient(const UnaryFunction& f, GradientContext& c);

}  // namespace orrery::ir

#endif  // ORRERY_IR_OPS_UNARY_H_
