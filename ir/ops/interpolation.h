#ifndef ORRERY_IR_OPS_INTERPOLATION_H_
#define ORRERY_IR_OPS_INTERPOLATION_H_

#include <cstdint>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "ir/attributes.h"

// How the elements of a resized dimension are made of those that were there: the modes of ONNX's
// Resize, https://onnx.ai/onnx/operators/onnx__Resize.html.

namespace orrery::ir {

/// What one position of the result is made of.
struct Blend {
  std::vector<std::pair<int64_t, double>> taps;  // positions and weights
  bool is_outside = false;                       // of what is cropped: extrapolated
};

/// Ok when mode, coordinates, nearest_mode, scales and roi are what they can be.
absl::Status CheckInterpolation(const AttributeSet& attributes);

/// How many elements an element of the result is made of along each axis.
int64_t TapsOf(const AttributeSet& attributes);

/// One blend for each of `to` positions, of the elements of a dimension of `from`: the one that
/// entry `i` of the attributes `axes`, `scales` and `roi` tells of.
std::vector<Blend> BlendsAlong(const AttributeSet& attributes, size_t i, int64_t from, int64_t to);

}  // namespace orrery::ir

#endif  // ORRERY_IR_OPS_INTERPOLATION_H_
