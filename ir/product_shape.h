#ifndef ORRERY_IR_PRODUCT_SHAPE_H_
#define ORRERY_IR_PRODUCT_SHAPE_H_

#include <cstdint>

#include "absl/container/inlined_vector.h"

namespace orrery::ir {

/// `batch` products of matrices [m,k] and [k,n], in one kernel; m are the rows of the result.
struct ProductShape {
  int64_t batch = 1;
  int64_t m = 0, n = 0, k = 0;

  friend bool operator==(const ProductShape&, const ProductShape&) = default;
};

/// Those that an op runs one after another, a kernel each.
using ProductShapes = absl::InlinedVector<ProductShape, 2>;

}  // namespace orrery::ir

#endif  // ORRERY_IR_PRODUCT_SHAPE_H_
