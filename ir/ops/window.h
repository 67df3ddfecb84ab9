#ifndef ORRERY_IR_OPS_WINDOW_H_
#define ORRERY_IR_OPS_WINDOW_H_

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "ir/attributes.h"
#include "ir/op_info.h"
#include "ir/type.h"

// Windows that slide over the spatial dimensions of [batch, channels, ..]: what convolutions and
// pools have in common.

namespace orrery::ir {

/// One entry for each spatial dimension.
struct Window {
  Dims kernel, strides, before, after, dilations;
  bool ceil = false;  // sizes round up

  /// How far the elements of the window reach along dimension d.
  int64_t Reach(size_t d) const { return (kernel[d] - 1) * dilations[d] + 1; }
};

/// The window of an op over `rank` spatial dimensions, from its attributes `strides`, `pads` (all
/// before, then all after), `dilations` and `ceil_mode`; each may be absent. `kernel` is the size
/// of the window. Errors: a list of another length, numbers that are none.
absl::StatusOr<Window> WindowOf(const AttributeSet& attributes, const Dims& kernel);

/// The attribute `kernel`, of a pool.
absl::StatusOr<Window> PoolWindow(const AttributeSet& attributes, size_t rank);

/// How often the window fits into each dimension of `input`. A window that would start in the
/// padding behind the input is none. An error where it does not fit once.
absl::StatusOr<Dims> WindowCounts(const Window& window, const Dims& input);

/// The spatial dims: all but the first two.
Dims SpatialDims(const Dims& dims);

/// For each element of the kernel and each position of the window, positions fastest: which element
/// of the spatial `input` it is, or -1 for one in the padding.
std::vector<int64_t> WindowTaps(const Window& window, const Dims& input, const Dims& counts);

/// An error where the taps would take too much memory.
absl::Status CheckTaps(const Window& window, const Dims& counts);

/// Of the attributes of a pool those that say what its window is.
AttributeSet WindowAttributes(const AttributeSet& attributes);

}  // namespace orrery::ir

#endif  // ORRERY_IR_OPS_WINDOW_H_
