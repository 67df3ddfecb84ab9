#ifndef ORRERY_TRANSFORMS_REDISTRIBUTION_DTENSOR_VIEW_H_
#define ORRERY_TRANSFORMS_REDISTRIBUTION_DTENSOR_VIEW_H_

#include <array>
#include <cstdint>

#include "ir/mesh.h"
#include "ir/type.h"
#include "transforms/redistribution/dtensor_price.h"
#include "transforms/redistribution/packed_layout.h"

// A packed layout in nested chunks, read once for all the steps that may be taken from it.

namespace orrery::transforms::redistribution {

/// Reductions as bits.
inline uint8_t BitOf(ir::Reduction reduction) {
  return static_cast<uint8_t>(1u << static_cast<int>(reduction));
}

/// The reductions that may stand beside `reduction` in one layout: sums and averages commute.
uint8_t Beside(ir::Reduction reduction);

/// The largest of `parts` chunks of `size` elements, which is the first one.
inline int64_t FullestPart(int64_t size, int64_t parts) { return (size + parts - 1) / parts; }

/// What is where, and how large it is on the fullest rank, which has coordinate 0 on all axes.
struct DtensorView {
  const PackedLayout* layout = nullptr;
  AxisMask splitting = 0, partial = 0, replicating = 0;
  uint8_t reductions = 0;                             // of the partial axes
  std::array<int8_t, ir::kMaxAxes> dim, position;     // of splitting axes
  std::array<uint8_t, PackedLayout::kMaxDims> depth;  // how many axes split the dimension
  std::array<int64_t, PackedLayout::kMaxDims> size;   // of the dimension
  std::array<int64_t, PackedLayout::kMaxDims> wider;  // without its innermost axis
  int64_t elements = 1;

  /// Elements when `dim` has another size.
  int64_t With(int dim, int64_t other) const {
    return elements == 0 ? 0 : elements / size[static_cast<size_t>(dim)] * other;
  }
};

/// Views `layout`, which must outlive the view.
DtensorView ReadDtensor(const PackedLayout& layout, const ir::Mesh& mesh, const ir::Dims& dims);

}  // namespace orrery::transforms::redistribution

#endif  // ORRERY_TRANSFORMS_REDISTRIBUTION_DTENSOR_VIEW_H_
