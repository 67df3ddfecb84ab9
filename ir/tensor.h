#ifndef ORRERY_IR_TENSOR_H_
#define ORRERY_IR_TENSOR_H_

#include <cstdint>
#include <initializer_list>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "ir/attributes.h"
#include "ir/op_kind_fwd.h"
#include "ir/type.h"

// Tensors with values: what constant folding and the reference executor compute with. Small and
// plain; nothing that costs or simulates a model needs them.

namespace orrery::ir {

/// A dense tensor, the last dimension fastest. Elements of floating point are kept as doubles that
/// the dtype can hold; all others (bool as 0 and 1, u64 by its bits) as int64.
class Tensor {
 public:
  Tensor() = default;
  /// A tensor of these dims, all elements 0.
  Tensor(DType dtype, Dims dims);
  /// A tensor of these elements, the last dimension fastest. Aborts unless there are as many as the
  /// dims say, of the kind that the dtype has.
  static Tensor OfFloats(DType dtype, Dims dims, std::vector<double> values);
  /// The same of whole numbers, where the dtype has no fractions.
  static Tensor OfInts(DType dtype, Dims dims, std::vector<int64_t> values);
  /// A vector of i64: a shape, axes.
  static Tensor OfShape(std::vector<int64_t> values);

  DType dtype() const { return dtype_; }
  const Dims& dims() const { return dims_; }
  TensorType type() const { return {.dtype = dtype_, .dims = dims_, .sharding = {}}; }
  int64_t size() const { return static_cast<int64_t>(is_float() ? floats_.size() : ints_.size()); }
  bool is_float() const { return IsFloat(dtype_); }

  /// The elements; empty when the tensor is of the other kind.
  std::vector<double>& floats() { return floats_; }
  const std::vector<double>& floats() const { return floats_; }
  /// Likewise the whole numbers.
  std::vector<int64_t>& ints() { return ints_; }
  const std::vector<int64_t>& ints() const { return ints_; }

  /// Element i of either kind, as a number.
  double Number(int64_t i) const;
  /// Sets element i of either kind; a fraction is cut towards zero for whole numbers.
  void SetNumber(int64_t i, double value);
  /// Copies element `from` of `other`, a tensor of the same dtype, to position `to`.
  void CopyElement(int64_t to, const Tensor& other, int64_t from);

  /// The same elements under other dims of the same size.
  Tensor Reshaped(Dims dims) const;
  /// Rounds every element to what the dtype can hold: floats to its precision, whole numbers to
  /// its width, bools to 0 and 1.
  void RoundToDType();

  friend bool operator==(const Tensor&, const Tensor&) = default;

 private:
  DType dtype_ = DType::kF32;
  Dims dims_;
  std::vector<double> floats_;
  std::vector<int64_t> ints_;
};

/// `value` as the nearest number of a floating-point `dtype`; ties to even. f8 is E4M3 without
/// infinities.
double RoundFloat(double value, DType dtype);

/// Which part of a tensor a rank holds.
struct Share {
  Dims first;  // position in the whole tensor of its first element
  Dims whole;  // dims of that
};

/// One application of an op on tensors, as its record's `evaluate` sees it. Types are local: of
/// the part that one rank holds.
struct Evaluation {
  const AttributeSet& attributes;
  std::span<const Tensor* const> operands;
  /// One for each result, with its type and all zero; to be filled. Rounded afterwards.
  std::vector<Tensor>& results;
  /// Over how many ranks the op leaves a partial sum that it makes itself: a product split along
  /// its inner dimension. What is added to the sum (a bias) is added in so many parts.
  int64_t partial_over = 1;
  /// Of the operands, then of the results; empty: all are whole.
  std::span<const Share> shares = {};

  /// Operand i, from 0, as this rank has it.
  const Tensor& operand(size_t i) const { return *operands[i]; }
  /// Whether there is an operand i: the last of some ops may be missing.
  bool has_operand(size_t i) const { return i < operands.size(); }

  /// The position in the whole operand, or result, of what is first along a dimension here, and how
  /// much the whole has there.
  int64_t OperandFirst(size_t i, size_t dim) const {
    return shares.empty() ? 0 : shares[i].first[dim];
  }
  /// How much the whole operand has along a dimension.
  int64_t OperandWhole(size_t i, size_t dim) const {
    return shares.empty() ? operands[i]->dims()[dim] : shares[i].whole[dim];
  }
  /// The position in the whole result of what is first along a dimension here.
  int64_t ResultFirst(size_t j, size_t dim) const {
    return shares.empty() ? 0 : shares[operands.size() + j].first[dim];
  }
  /// How much the whole result has along a dimension.
  int64_t ResultWhole(size_t j, size_t dim) const {
    return shares.empty() ? results[j].dims()[dim] : shares[operands.size() + j].whole[dim];
  }
};

/// The results of one op, of the given types. Unimplemented for an op that its record cannot
/// evaluate.
absl::StatusOr<std::vector<Tensor>> Evaluate(OpKind kind, const AttributeSet& attributes,
                                             std::span<const Tensor* const> operands,
                                             std::span<const TensorType> result_types,
                                             int64_t partial_over = 1);

/// Attributes of a Constant that holds `tensor`: `{fill=v}` when all elements are one value, else
/// `{values=[…]}`; none for a tensor of no elements.
AttributeSet ConstantAttributes(const Tensor& tensor);
/// The inverse: the tensor of a Constant of that type. Nothing when its values were left out.
std::optional<Tensor> ConstantTensor(const AttributeSet& attributes, const TensorType& type);

// Positions in tensors.

/// Distance of neighbours along each dimension, in elements.
Dims StridesOf(const Dims& dims);

/// The dims of x and y broadcast against each other as numpy does; nothing when they do not fit.
std::optional<Dims> BroadcastDims(const Dims& x, const Dims& y);

/// Strides with which a tensor of dims `from` is read when it is broadcast to `to`: 0 where it is
/// repeated. `from` must broadcast to `to`.
Dims BroadcastStrides(const Dims& from, const Dims& to);

/// Walks over all positions of a tensor in order, and keeps the offsets that go with them for some
/// lists of strides.
///
///   for (Odometer at(dims, {BroadcastStrides(x, dims)}); !at.done(); at.Next()) use(at.offset(0));
class Odometer {
 public:
  Odometer(const Dims& dims, std::initializer_list<Dims> strides);

  bool done() const { return left_ == 0; }
  /// Goes on to the next position. Requires that it is not done.
  void Next();
  /// How many positions were passed.
  int64_t index() const { return index_; }
  /// The offset of the position by list i of strides, in elements.
  int64_t offset(size_t i) const { return offsets_[i]; }
  const Dims& at() const { return at_; }

 private:
  Dims dims_, at_;
  absl::InlinedVector<Dims, 3> strides_;
  absl::InlinedVector<int64_t, 3> offsets_;
  int64_t index_ = 0, left_ = 0;
};

/// A tensor seen as outer x size x inner around dimension `dim`.
struct AroundDim {
  int64_t outer = 1, size = 1, inner = 1;
};
/// A tensor of these dims seen so; dimensions outside of `dim` are before it.
AroundDim SplitAround(const Dims& dims, size_t dim);

/// Dimension `axis` of `rank`, counted from the end when negative; an error that names it
/// otherwise.
absl::StatusOr<size_t> NormalizeAxis(int64_t axis, size_t rank);

}  // namespace orrery::ir

#endif  // ORRERY_IR_TENSOR_H_
