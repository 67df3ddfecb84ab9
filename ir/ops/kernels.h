#ifndef ORRERY_IR_OPS_KERNELS_H_
#define ORRERY_IR_OPS_KERNELS_H_

#include <cstdint>
#include <string>
#include <type_traits>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "ir/builder.h"
#include "ir/op_info.h"
#include "ir/tensor.h"

// What the records of many ops share: inference, evaluation and gradients of one element at a time.

namespace orrery::ir {

/// "[2,3]".
inline std::string Show(const Dims& dims) {
  return absl::StrCat("[", absl::StrJoin(dims, ","), "]");
}

/// Dimension `axis` of `rank`, counted from the front; without the attribute the last one.
inline absl::StatusOr<size_t> AxisOrLast(const AttributeSet& attributes, size_t rank) {
  return NormalizeAxis(attributes.Int("axis", -1), rank);
}

/// Result 0 has dtype and dims of operand 0.
absl::Status InferUnary(const OpTypes& op, TypeList& results);
/// Two operands of one dtype, broadcast as numpy does.
absl::Status InferBroadcast(const OpTypes& op, TypeList& results);
/// Two operands of one dtype and shape; the result is as they are.
absl::Status InferSameShapes(const OpTypes& op, TypeList& results);
/// One floating-point operation an element of result 0.
double OneFlopAnElement(const OpTypes& op, const TypeList& results);

/// The gradient of an operand that was broadcast: `gradient`, of the shape of the result, summed
/// down to the shape of operand `i`.
ValueId Unbroadcast(GradientContext& c, ValueId gradient, int i);

/// The elements of a tensor as the numbers that products are made of: T is double for floating
/// point, else uint64_t, whose sums wrap around.
template <typename T>
T* Elements(const Tensor& tensor) {
  auto& writable = const_cast<Tensor&>(tensor);
  if constexpr (std::is_same_v<T, double>) {
    return writable.floats().data();
  } else {
    return reinterpret_cast<T*>(writable.ints().data());
  }
}

/// Calls f with a zero of that type.
template <typename F>
void WithNumbersOf(const Tensor& tensor, F f) {
  if (tensor.is_float()) {
    f(double{});
  } else {
    f(uint64_t{});
  }
}

/// results[0][i] = f(operand 0 [i]), on numbers.
template <typename F>
absl::Status EvaluateUnary(Evaluation& e, F f) {
  Tensor& y = e.results[0];
  for (int64_t i = 0; i < y.size(); ++i) y.SetNumber(i, f(e.operand(0).Number(i)));
  return absl::OkStatus();
}

/// results[0] = f(operand 0, operand 1), on numbers, with broadcasting.
template <typename F>
absl::Status EvaluateBinary(Evaluation& e, F f) {
  Tensor& y = e.results[0];
  for (Odometer at(y.dims(), {BroadcastStrides(e.operand(0).dims(), y.dims()),
                              BroadcastStrides(e.operand(1).dims(), y.dims())});
       !at.done(); at.Next()) {
    y.SetNumber(at.index(),
                f(e.operand(0).Number(at.offset(0)), e.operand(1).Number(at.offset(1))));
  }
  return absl::OkStatus();
}

}  // namespace orrery::ir

#endif  // ORRERY_IR_OPS_KERNELS_H_
