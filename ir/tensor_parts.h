#ifndef ORRERY_IR_TENSOR_PARTS_H_
#define ORRERY_IR_TENSOR_PARTS_H_

#include <cstdint>
#include <span>
#include <vector>

#include "ir/mesh.h"
#include "ir/tensor.h"
#include "ir/type.h"

// Which part of a tensor each rank of a mesh holds, and the whole from the parts.

namespace orrery::ir {

/// Which part of a dimension that `axes` split `rank` holds: the first axis is outermost.
int64_t PartOf(const Mesh& mesh, int64_t rank, const AxisList& axes);

/// `rank` with its coordinates along `axes` taken off: equal for the ranks of one group.
int64_t RestOf(const Mesh& mesh, int64_t rank, const AxisList& axes);

/// Which part of a value of that type `rank` holds.
Share ShareOf(const TensorType& type, const Mesh& mesh, int64_t rank);

/// A rank, and the type of a value of which it holds a part.
struct Holder {
  const TensorType& type;
  int64_t rank = 0;
};

/// Copies the elements that `from` and `to` both hold, of a value of the same dims, from `part`,
/// what `from` holds, to their places in `held`, what `to` holds. Both tensors have the dims that
/// LocalDims says.
void CopyHeld(const Tensor& part, const Holder& from, const Holder& to, const Mesh& mesh,
              Tensor& held);

/// What `rank` holds of `whole`, a value of type `type`, however it is split: where the tensor does
/// not divide, some hold less than others, or nothing. Of a partial value the first rank along the
/// axes of a sum or product holds all, and the others zeros or ones; of averages, maxima and minima
/// all do.
Tensor Scatter(const Tensor& whole, const TensorType& type, const Mesh& mesh, int64_t rank);

/// The whole tensor from the parts of `ranks`: what is partial is reduced. `disagreement` is
/// raised to the largest difference between ranks that should hold the same. `type` says dtype,
/// dims and sharding; the parts have its local dims.
Tensor Gather(std::span<const Tensor> parts, const TensorType& type, const Mesh& mesh,
              std::span<const int64_t> ranks, double& disagreement);

/// Part number `part` of `parts` equal ones along dimension `dim`; with zeros beyond the end where
/// that does not divide.
Tensor SlicePart(const Tensor& whole, size_t dim, int64_t part, int64_t parts);
/// Writes `part` over that part of `whole`.
void PastePart(const Tensor& part, size_t dim, int64_t number, Tensor& whole);

/// The same of `rows` positions from `begin` on.
Tensor SliceRows(const Tensor& whole, size_t dim, int64_t begin, int64_t rows);
/// Writes `part` over the positions from `begin` on of `whole`; what would stand beyond its end is
/// left out.
void PasteRows(const Tensor& part, size_t dim, int64_t begin, Tensor& whole);

/// The largest absolute difference of two tensors; infinite when their dims differ, or when one has
/// NaN where the other has not.
double Distance(const Tensor& a, const Tensor& b);

/// All rank numbers of a mesh; the one rank 0 without a mesh.
std::vector<int64_t> AllRanks(const Mesh& mesh);

/// Of a rank that is not the first along partial axes of `reduction` what makes its part of a value
/// no part of the result: zeros of a sum, ones of a product; else `part`.
Tensor Neutral(const Tensor& part, Reduction reduction);

/// What is partial over `axes`, as `sharding` says, from the part of each rank along them, reduced
/// in that order; averages are sums that are divided by the number of ranks along their axes.
Tensor Reduced(std::span<const Tensor* const> parts, const Sharding& sharding, const AxisList& axes,
               const Mesh& mesh);

/// Adds `from` to `sum`, element by element; both have one type.
void AddTensor(const Tensor& from, Tensor& sum);

}  // namespace orrery::ir

#endif  // ORRERY_IR_TENSOR_PARTS_H_
