#ifndef ORRERY_IR_OPS_UNARY_RECORD_H_
#define ORRERY_IR_OPS_UNARY_RECORD_H_

#include <cstddef>
#include <string>

#include "ir/op_info.h"
#include "ir/ops/pointwise.h"
#include "ir/ops/unary.h"
#include "support/status.h"

// From a row of a table of unary functions to the record of its op kind.

namespace orrery::ir {

/// The row of that name in a table; there is one, or the program does not compile.
template <const auto& table>
consteval size_t RowOf(absl::string_view name) {
  size_t row = 0;
  while (table[row].name != name) ++row;
  return row;
}

/// What a row of a table says, as the fields of an op record.
template <const auto& table, size_t row>
struct UnaryRules {
  static constexpr const UnaryFunction& kFunction = table[row];

  /// The type of the operand, which is of floating point unless the function has `whole`.
  static absl::Status Infer(const OpTypes& op, TypeList& results) {
    if constexpr (kFunction.whole == nullptr) return InferFloat(op, results);
    ORRERY_RETURN_IF_ERROR(WantNumbers(op));
    return InferUnary(op, results);
  }

  static absl::Status Evaluate(Evaluation& e) {
    if (!e.operand(0).is_float()) return EvaluateWhole(kFunction, e);
    const UnaryParameters parameters = ReadParameters(kFunction, e.attributes);
    return EvaluateUnary(e, [&](double x) { return kFunction.value(x, parameters); });
  }

  /// One UnaryGrad, which keeps the operand or the result.
  static absl::Status Gradient(GradientContext& c) { return UnaryGradient(kFunction, c); }
};

/// The record of the op kind that computes the function `name` of a table.
template <const auto& table, size_t row>
constexpr OpInfo UnaryRecord() {
  using Rules = UnaryRules<table, row>;
  constexpr const UnaryFunction& f = table[row];
  return {
      .name = f.name,
      .summary = f.summary,
      .operands = 1,
      .infer = Rules::Infer,
      .flops = FlopsAnElement<f.flops>,
      .sharding = ElementwiseRule,
      .evaluate = Rules::Evaluate,
      .gradient = f.slope == nullptr ? nullptr : Rules::Gradient,
      .no_gradient = f.slope == nullptr ? ~uint32_t{0} : 0,
  };
}

}  // namespace orrery::ir

#endif  // ORRERY_IR_OPS_UNARY_RECORD_H_
