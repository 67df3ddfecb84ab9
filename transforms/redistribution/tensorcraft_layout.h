#ifndef ORRERY_TRANSFORMS_REDISTRIBUTION_TENSORCRAFT_LAYOUT_H_
#define ORRERY_TRANSFORMS_REDISTRIBUTION_TENSORCRAFT_LAYOUT_H_

#include <array>
#include <cstdint>

#include "absl/container/inlined_vector.h"
#include "absl/status/status.h"
#include "ir/mesh.h"
#include "ir/type.h"
#include "transforms/redistribution/packed_layout.h"

// Layouts as tensorcraft has them: nothing is partial, blocks are dealt cyclically, and every rank
// owns at least one element.

namespace orrery::transforms::redistribution {

/// Elements of the fullest of `parts` parts, the first, of `size` elements that are dealt to them
/// in blocks of `block`. Requires positive numbers.
int64_t LargestPart(int64_t size, int64_t block, int64_t parts);

/// The largest block with which each of `parts` parts of `size` elements has one; 0 where there is
/// none.
int64_t LargestBlock(int64_t size, int64_t parts);

/// What splits one dimension.
struct DimSplit {
  ir::AxisList axes;
  int64_t block = 1;  // 1 where nothing splits it
  int64_t parts = 1;
  int64_t largest = 1;  // elements of the largest part
};

/// A layout opened up: what operations are worked out on.
struct TensorcraftLayout {
  PackedLayout packed;
  absl::InlinedVector<DimSplit, 6> dims;
  ir::AxisList used;     // ascending
  int64_t elements = 1;  // of rank 0, which has most
  int64_t ranks = 1;     // that hold different parts
};

/// The tensor, and the mesh that it is sharded over.
class TensorcraftTensor {
 public:
  TensorcraftTensor(const ir::Mesh& mesh, const ir::Dims& dims);

  int rank() const { return static_cast<int>(dims_.size()); }
  int axis_count() const { return axis_count_; }
  /// The ranks along an axis of the mesh, or along several: their product.
  int64_t size(ir::AxisIndex axis) const { return axis_sizes_[axis]; }
  int64_t size(const ir::AxisList& axes) const;
  /// The size of a dimension of the whole tensor.
  int64_t dim(int dim) const { return dims_[static_cast<size_t>(dim)]; }
  /// Elements of the whole tensor.
  int64_t elements() const { return elements_; }

  /// Whether the tensor can be planned for: an error of one line, or none.
  absl::Status Check() const;
  /// Whether tensorcraft has this layout, as Normal makes it.
  absl::Status Check(const PackedLayout& layout) const;
  /// Chunks of one size as blocks of that size.
  PackedLayout Normal(const PackedLayout& layout) const;
  /// Requires a layout that passes the check, in its normal form.
  TensorcraftLayout Open(const PackedLayout& layout) const;
  /// Elements that rank 0 holds, which has most. Requires what `Open` does.
  int64_t Elements(const PackedLayout& layout) const;

 private:
  ir::Dims dims_;
  int axis_count_ = 0;
  std::array<int64_t, ir::kMaxAxes> axis_sizes_ = {};
  int64_t elements_ = 1;
};

}  // namespace orrery::transforms::redistribution

#endif  // ORRERY_TRANSFORMS_REDISTRIBUTION_TENSORCRAFT_LAYOUT_H_
