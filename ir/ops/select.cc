#include "ir/op_info.h"
#include "ir/op_kind.h"
#include "ir/ops/pointwise.h"
#include "support/status.h"

// Choices between elements, and changes of the element type.

namespace orrery::ir {
namespace select_cc {
namespace {

absl::Status InferWhere(const OpTypes& op, TypeList& results) {
  const TensorType& condition = *op.operands[0];
  if (condition.dtype != DType::kBool) {
    return absl::InvalidArgumentError(
        absl::StrCat("the condition is of ", ToString(condition.dtype), "; wanted bool"));
  }
  ORRERY_RETURN_IF_ERROR(InferBroadcast(
      {.attributes = op.attributes, .operands = op.operands.subspan(1), .mesh = op.mesh}, results));
  const std::optional<Dims> dims = BroadcastDims(condition.dims, results[0].dims);
  if (!dims.has_value()) {
    return absl::InvalidArgumentError(absl::StrCat("shapes ", Show(condition.dims), " and ",
                                                   Show(results[0].dims), " do not broadcast"));
  }
  results[0].dims = *dims;
  return absl::OkStatus();
}

absl::Status EvaluateWhere(Evaluation& e) {
  Tensor& y = e.results[0];
  for (Odometer at(y.dims(), {BroadcastStrides(e.operand(0).dims(), y.dims()),
                              BroadcastStrides(e.operand(1).dims(), y.dims()),
                              BroadcastStrides(e.operand(2).dims(), y.dims())});
       !at.done(); at.Next()) {
    const size_t from = ElementOf<int64_t>(e.operand(0), at.offset(0)) != 0 ? 1 : 2;
    y.CopyElement(at.index(), e.operand(from), at.offset(from));
  }
  return absl::OkStatus();
}

absl::Status WhereGradient(GradientContext& c) {
  Builder& b = c.builder();
  const ValueId dy = c.result_gradient();
  const ValueId zero = ScalarConstant(b, b.type(dy).dtype, 0);
  if (c.needs(1)) {
    SetBroadcastGradient(c, 1, b.Op(OpKind::kWhere, {c.operand(0), dy, zero}));
  }
  if (c.needs(2)) {
    SetBroadcastGradient(c, 2, b.Op(OpKind::kWhere, {c.operand(0), zero, dy}));
  }
  return b.status();
}

absl::Status InferCast(const OpTypes& op, TypeList& results) {
  const std::string to = op.attributes.String("to", "");
  const std::optional<DType> dtype = ParseDType(to);
  if (!dtype.has_value()) {
    return absl::InvalidArgumentError(
        absl::StrCat("to=\"", to, "\" is no element type; wanted one such as \"f16\""));
  }
  ORRERY_RETURN_IF_ERROR(InferUnary(op, results));
  results[0].dtype = *dtype;
  return absl::OkStatus();
}

absl::Status EvaluateCast(Evaluation& e) {
  const Tensor& x = e.operand(0);
  Tensor& y = e.results[0];
  if (!x.is_float() && !y.is_float()) {  // through doubles, large numbers would be rounded
    y.ints() = x.ints();
    return absl::OkStatus();
  }
  return EvaluateUnary(e, [](double value) { return value; });
}

absl::Status CastGradient(GradientContext& c) {
  const AttributeSet back = {{"to", std::string(ToString(c.operand_type(0).dtype))}};
  c.SetOperandGradient(
      0, c.builder().Op(OpKind::kCast, {c.result_gradient()}, c.GradientName(0), back));
  return c.builder().status();
}

}  // namespace
}  // namespace select_cc

extern const OpInfo kWhereOp = {
    .name = "Where",
    .summary = "y where the condition x holds, else z, with broadcasting",
    .operands = 3,
    .infer = select_cc::InferWhere,
    .flops = OneFlopAnElement,
    .sharding = ElementwiseRule,
    .evaluate = select_cc::EvaluateWhere,
    .gradient = select_cc::WhereGradient,
    .no_gradient = 1,
};

// Not linear: what is partial is summed before it is cut to whole numbers or rounded.
extern const OpInfo kCastOp = {
    .name = "Cast",
    .summary = "x as elements of the type `to`",
    .operands = 1,
    .infer = select_cc::InferCast,
    .flops = OneFlopAnElement,
    .sharding = ElementwiseRule,
    .evaluate = select_cc::EvaluateCast,
    .gradient = select_cc::CastGradient,
};

}  // namespace orrery::ir
