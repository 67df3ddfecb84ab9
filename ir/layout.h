#ifndef ORRERY_IR_LAYOUT_H_
#define ORRERY_IR_LAYOUT_H_

#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "ir/mesh.h"
#include "ir/type.h"

// What a Sharding says, exactly: which elements each rank holds, however unevenly the tensor
// divides. Nothing here goes through the ranks of a mesh: it may have 2^40 of them.

namespace orrery::ir {

/// The elements of a dimension from `begin` up to but not including `end`.
struct Range {
  int64_t begin = 0;
  int64_t end = 0;

  friend bool operator==(const Range&, const Range&) = default;
};

/// What a rank holds of a dimension: the first `length` elements of every `stride` from `begin` on,
/// up to `end`. One form for one set: a single range has length and stride end - begin, and an
/// empty part is all zeros.
struct Part {
  int64_t begin = 0;
  int64_t end = 0;
  int64_t length = 0;
  int64_t stride = 0;

  bool empty() const { return begin == end; }
  /// Number of elements.
  int64_t size() const;
  /// Whether the element of that position is among them: of none in an empty part.
  bool contains(int64_t element) const;
  /// The elements as disjoint ranges in ascending order.
  std::vector<Range> Ranges() const;

  friend bool operator==(const Part&, const Part&) = default;
};

/// A dimension of `size` elements, and how it is split: see Sharding.
struct SplitDimension {
  int64_t size = 0;
  AxisList axes;
  int64_t block = kNestedChunks;

  friend bool operator==(const SplitDimension&, const SplitDimension&) = default;
};

/// Dimension `dim` of a tensor of `dims`, as `sharding` splits it.
SplitDimension SplitOf(const Sharding& sharding, const Dims& dims, size_t dim);

/// OK where `sharding` is a layout of a tensor of `dims` on `mesh`, else InvalidArgument that says
/// what was found and wanted: one split a dimension or none; axes that the mesh has, each in one
/// place; blocks that are positive or one of the two named kinds; and reductions of one kind, or
/// sums and averages. Anything may be unevenly split.
absl::Status CheckSharding(const Sharding& sharding, const Dims& dims, const Mesh& mesh);

// The functions below want a sharding that passes CheckSharding, and dims that are not negative.

/// The elements of a dimension that `rank` holds.
Part HeldPart(const SplitDimension& split, const Mesh& mesh, int64_t rank);

/// The most elements of a dimension that any rank holds: whatever the kind of blocks, rank 0 does.
int64_t LargestPart(const SplitDimension& split, const Mesh& mesh);

/// How many elements of each dimension `rank` holds.
Dims LocalDims(const Sharding& sharding, const Dims& dims, const Mesh& mesh, int64_t rank);

/// The same of the rank that holds most.
Dims LargestLocalDims(const Sharding& sharding, const Dims& dims, const Mesh& mesh);

/// The most elements that any rank holds; the largest int64_t where they are more than that.
int64_t LargestLocalElements(const Sharding& sharding, const Dims& dims, const Mesh& mesh);

/// One form for all layouts whose dimensions lie on the ranks alike. Axes of size 1 are dropped;
/// of kinds of blocks that come to the same, nested chunks are preferred, then positive blocks;
/// axes along which only the first coordinate holds anything stand in ascending order.
Sharding Normalized(const Sharding& sharding, const Dims& dims, const Mesh& mesh);

/// The same layout in positive blocks, dealt in turn; an error where parts are of other sizes. What
/// has positive blocks stays as it is.
absl::StatusOr<Sharding> InBlocks(const Sharding& sharding, const Dims& dims, const Mesh& mesh);

/// The same layout in nested chunks; an error where parts are of other sizes. What has nested
/// chunks stays as it is.
absl::StatusOr<Sharding> InNestedChunks(const Sharding& sharding, const Dims& dims,
                                        const Mesh& mesh);

/// Whether each rank holds the same elements in `a` as in `b`, partial over the same axes. More
/// than equal normal forms: an axis that leaves all but one of its ranks empty may do so in any
/// dimension.
bool SameOwnership(const Sharding& a, const Sharding& b, const Dims& dims, const Mesh& mesh);

}  // namespace orrery::ir

#endif  // ORRERY_IR_LAYOUT_H_
