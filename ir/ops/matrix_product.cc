#include "ir/ops/matrix_product.h"

#include <Eigen/Core>

#include "support/check.h"

namespace orrery::ir {
namespace matrix_product_cc {
namespace {

template <typename T>
using Stored = Eigen::Map<Eigen::Matrix<T, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>>;

template <typename T>
Stored<T> StoredOf(const MatrixView<T>& view) {
  return {view.data, view.rows, view.columns};
}

}  // namespace
}  // namespace matrix_product_cc

template <typename T>
void AddProduct(const MatrixView<T>& to, const MatrixView<T>& a, const MatrixView<T>& b) {
  ORRERY_CHECK(!to.transposed);
  auto sum = matrix_product_cc::StoredOf(to);
  const auto left = matrix_product_cc::StoredOf(a), right = matrix_product_cc::StoredOf(b);
  if (a.transposed && b.transposed) {
    sum.noalias() += left.transpose() * right.transpose();
  } else if (a.transposed) {
    sum.noalias() += left.transpose() * right;
  } else if (b.transposed) {
    sum.noalias() += left * right.transpose();
  } else {
    sum.noalias() += left * right;
  }
}

template void AddProduct(const MatrixView<double>&, const MatrixView<double>&,
                         const MatrixView<double>&);
template void AddProduct(const MatrixView<uint64_t>&, const MatrixView<uint64_t>&,
                         const MatrixView<uint64_t>&);

}  // namespace orrery::ir
