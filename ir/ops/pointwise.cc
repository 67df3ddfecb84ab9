#include "ir/ops/pointwise.h"

#include <span>

#include "ir/op_info.h"
#include "ir/op_kind.h"
#include "support/status.h"

namespace orrery::ir {
namespace pointwise_cc {
namespace {

absl::Status Want(const OpTypes& op, size_t i, bool fits, absl::string_view wanted) {
  if (fits) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("operand ", i, " is of ", ToString(op.operands[i]->dtype), "; wanted ", wanted));
}

}  // namespace
}  // namespace pointwise_cc

absl::Status WantNumbers(const OpTypes& op) {
  for (size_t i = 0; i < op.operands.size(); ++i) {
    ORRERY_RETURN_IF_ERROR(
        pointwise_cc::Want(op, i, op.operands[i]->dtype != DType::kBool, "numbers"));
  }
  return absl::OkStatus();
}

absl::Status WantBits(const OpTypes& op) {
  for (size_t i = 0; i < op.operands.size(); ++i) {
    ORRERY_RETURN_IF_ERROR(
        pointwise_cc::Want(op, i, !IsFloat(op.operands[i]->dtype), "bool or whole numbers"));
  }
  return absl::OkStatus();
}

absl::Status InferFloat(const OpTypes& op, TypeList& results) {
  ORRERY_RETURN_IF_ERROR(CheckFloat(op));
  return InferUnary(op, results);
}

absl::Status InferArithmetic(const OpTypes& op, TypeList& results) {
  ORRERY_RETURN_IF_ERROR(WantNumbers(op));
  return InferBroadcast(op, results);
}

absl::Status InferBits(const OpTypes& op, TypeList& results) {
  ORRERY_RETURN_IF_ERROR(WantBits(op));
  return InferBroadcast(op, results);
}

absl::Status InferComparison(const OpTypes& op, TypeList& results) {
  ORRERY_RETURN_IF_ERROR(InferBroadcast(op, results));
  results[0].dtype = DType::kBool;
  return absl::OkStatus();
}

absl::Status InferBroadcastGrad(const OpTypes& op, TypeList& results) {
  ORRERY_RETURN_IF_ERROR(CheckFloat(op));
  const TensorType &x = *op.operands[0], &p = *op.operands[1], &dy = *op.operands[2];
  if (dy.dtype == x.dtype && BroadcastDims(x.dims, p.dims) == dy.dims) {
    results.push_back({.dtype = dy.dtype, .dims = dy.dims, .sharding = {}});
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(absl::StrCat("operand 2 is ", ToString(dy.dtype), Show(dy.dims),
                                                 "; wanted the type and shape of the result of ",
                                                 Show(x.dims), " and ", Show(p.dims)));
}

ValueId ScalarConstant(Builder& builder, DType dtype, double value) {
  const Attribute number =
      IsFloat(dtype) ? Attribute(value) : Attribute(static_cast<int64_t>(value));
  const OpId op = builder.TypedOp(
      OpKind::kConstant, {}, {.dtype = dtype, .dims = {}, .sharding = {}}, "", {{"fill", number}});
  return op.valid() ? builder.function().result(op) : ValueId();
}

void SetBroadcastGradient(GradientContext& c, int i, ValueId gradient) {
  if (gradient.valid()) c.SetOperandGradient(i, Unbroadcast(c, gradient, i));
}

}  // namespace orrery::ir
