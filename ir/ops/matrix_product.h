#ifndef ORRERY_IR_OPS_MATRIX_PRODUCT_H_
#define ORRERY_IR_OPS_MATRIX_PRODUCT_H_

#include <cstdint>

// Products of matrices on tensors. They stand behind a function, since they take the compiler
// longer than all ops that are made of them.

namespace orrery::ir {

/// A row-major matrix whose elements somebody else has. T is double or uint64_t, whose sums wrap
/// around.
template <typename T>
struct MatrixView {
  T* data = nullptr;
  int64_t rows = 0, columns = 0;  // as stored
  bool transposed = false;        // counts as its transpose

  MatrixView Transposed(bool flip = true) const {
    return {data, rows, columns, transposed != flip};
  }
};

/// to += a b. `to` is not transposed, and shares no element with the others.
template <typename T>
void AddProduct(const MatrixView<T>& to, const MatrixView<T>& a, const MatrixView<T>& b);

}  // namespace orrery::ir

#endif  // ORRERY_IR_OPS_MATRIX_PRODUCT_H_
