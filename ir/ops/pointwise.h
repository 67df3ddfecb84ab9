#ifndef ORRERY_IR_OPS_POINTWISE_H_
#define ORRERY_IR_OPS_POINTWISE_H_

#include <cstdint>
#include <initializer_list>
#include <type_traits>

#include "absl/strings/string_view.h"
#include "ir/builder.h"
#include "ir/op_info.h"
#include "ir/ops/checks.h"
#include "ir/ops/kernels.h"
#include "ir/tensor.h"

// What the pointwise and reducing ops share: which element types they take, exact arithmetic on
// whole numbers, and how many flops an element costs.

namespace orrery::ir {

/// Flops an element, by convention. One: an add, a product, a quotient, a comparison, a choice.
/// `kExpFlops`: whatever takes a series or a table: exp, log, powers, roots, trigonometry, erf.
/// Composite functions cost the sum of their parts.
inline constexpr int kExpFlops = 4;
/// Of softmax: find the maximum, subtract it, exp, sum, divide.
inline constexpr int kSoftmaxFlops = kExpFlops + 4;

template <int flops>
double FlopsAnElement(const OpTypes&, const TypeList& results) {
  return flops * static_cast<double>(ElementCount(results[0].dims));
}

inline bool IsWhole(DType dtype) { return !IsFloat(dtype) && dtype != DType::kBool; }

/// An error for an operand of type bool.
absl::Status WantNumbers(const OpTypes& op);
/// An error for an operand of floating point.
absl::Status WantBits(const OpTypes& op);
/// As InferUnary, for floating point.
absl::Status InferFloat(const OpTypes& op, TypeList& results);
/// As InferBroadcast, for numbers.
absl::Status InferArithmetic(const OpTypes& op, TypeList& results);
/// As InferBroadcast, for bool and whole numbers.
absl::Status InferBits(const OpTypes& op, TypeList& results);
/// Broadcast operands of one type of numbers or bools; the result is bool.
absl::Status InferComparison(const OpTypes& op, TypeList& results);

/// Operands x, z and dy, where dy is as x and z broadcast; so is the result.
absl::Status InferBroadcastGrad(const OpTypes& op, TypeList& results);

/// Appends a constant of rank 0.
ValueId ScalarConstant(Builder& builder, DType dtype, double value);

/// Sets the gradient of operand i to `gradient`, of the shape of the result, summed down to the
/// shape of the operand.
void SetBroadcastGradient(GradientContext& c, int i, ValueId gradient);

/// Element i in the arithmetic of T: double for floating point, int64_t or uint64_t for all else.
template <typename T>
T ElementOf(const Tensor& tensor, int64_t i) {
  if constexpr (std::is_same_v<T, double>) return tensor.floats()[static_cast<size_t>(i)];
  if constexpr (!std::is_same_v<T, double>) {
    return static_cast<T>(tensor.ints()[static_cast<size_t>(i)]);
  }
}

template <typename T>
void SetElement(Tensor& tensor, int64_t i, T value) {
  if constexpr (std::is_same_v<T, double>) tensor.floats()[static_cast<size_t>(i)] = value;
  if constexpr (!std::is_same_v<T, double>) {
    tensor.ints()[static_cast<size_t>(i)] = static_cast<int64_t>(value);
  }
}

/// Calls f with a zero of the type in which elements of `dtype` are computed with: double, int64_t,
/// or uint64_t for u64.
template <typename F>
void WithArithmeticOf(DType dtype, F f) {
  if (IsFloat(dtype)) {
    f(double{});
  } else if (dtype == DType::kU64) {
    f(uint64_t{});
  } else {
    f(int64_t{});
  }
}

/// results[0] = f(operand 0, operand 1) with broadcasting, in the arithmetic of the operands, which
/// are of one type.
template <typename F>
absl::Status EvaluateTyped(Evaluation& e, F f) {
  const Tensor &x = e.operand(0), &z = e.operand(1);
  Tensor& y = e.results[0];
  WithArithmeticOf(x.dtype(), [&](auto zero) {
    using T = decltype(zero);
    for (Odometer at(y.dims(),
                     {BroadcastStrides(x.dims(), y.dims()), BroadcastStrides(z.dims(), y.dims())});
         !at.done(); at.Next()) {
      SetElement(y, at.index(), f(ElementOf<T>(x, at.offset(0)), ElementOf<T>(z, at.offset(1))));
    }
  });
  return absl::OkStatus();
}

/// x + y, x - y, x · y without overflow that is undefined: whole numbers wrap.
template <typename T, typename F>
T Wrapping(T x, T y, F f) {
  if constexpr (std::is_same_v<T, double>) return f(x, y);
  if constexpr (!std::is_same_v<T, double>) {
    return static_cast<T>(f(static_cast<uint64_t>(x), static_cast<uint64_t>(y)));
  }
}

}  // namespace orrery::ir

#endif  // ORRERY_IR_OPS_POINTWISE_H_
