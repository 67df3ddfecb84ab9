#ifndef ORRERY_TESTS_SEMANTICS_INTERPRETER_H_
#define ORRERY_TESTS_SEMANTICS_INTERPRETER_H_

#include <cstdint>
#include <span>
#include <vector>

#include "ir/function.h"

// What ops compute, in doubles and by the plainest loops: an interpreter for small tensors, so that
// tests can ask whether a transformed function still computes the same.

namespace orrery::semantics {

/// A dense tensor, the last dimension fastest.
struct Tensor {
  ir::Dims dims;
  std::vector<double> values;

  friend bool operator==(const Tensor&, const Tensor&) = default;
};

/// A tensor of `dims` that holds `value` everywhere.
Tensor Filled(const ir::Dims& dims, double value);

/// The largest absolute difference of two tensors; infinite when their shapes differ.
double Distance(const Tensor& a, const Tensor& b);

/// The part of `x` from `begin` to `end` of dimension `dim`.
Tensor Slice(const Tensor& x, size_t dim, int64_t begin, int64_t end);
/// Writes `part` into `x` from `begin` of dimension `dim` on.
void Paste(const Tensor& part, size_t dim, int64_t begin, Tensor& x);

/// Element by element, with no broadcasting.
Tensor Sum(const Tensor& x, const Tensor& y);

/// The results of one op that works on one rank alone. Optimizers learn at a rate of 0.1, momentum
/// and Adam forget at 0.9. Aborts for ops among ranks and microbatches.
std::vector<Tensor> Evaluate(ir::OpKind kind, const ir::AttributeSet& attributes,
                             std::span<const Tensor* const> operands);

}  // namespace orrery::semantics

#endif  // ORRERY_TESTS_SEMANTICS_INTERPRETER_H_
