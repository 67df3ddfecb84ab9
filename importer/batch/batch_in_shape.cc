#include "importer/batch/batch_in_shape.h"

#include <algorithm>

namespace orrery::importer {
namespace batch_in_shape_cc {
namespace {

int64_t Product(const ir::Dims& dims, size_t from, size_t to) {
  int64_t product = 1;
  for (size_t d = from; d < to; ++d) product *= dims[d];
  return product;
}

// The less the better.
int Rank(const BatchPosition& position, const ShapeSearch& search) {
  const bool early = static_cast<size_t>(position.dim) < search.first;
  const bool exact = position.outer == 1 && position.inner == 1;
  const bool outermost = search.outside && position.outer == 1;
  const bool same = position.dim == search.same;
  return (early ? 4 : 0) + (exact ? 0 : same ? 1 : outermost ? 2 : 3);
}

}  // namespace
}  // namespace batch_in_shape_cc

std::vector<BatchPosition> BatchInShape(const ir::Dims& dims, int64_t before, int64_t after,
                                        const ShapeSearch& search) {
  std::vector<BatchPosition> found;
  for (size_t d = 0; d < dims.size(); ++d) {
    const int64_t left = batch_in_shape_cc::Product(dims, 0, d),
                  right = batch_in_shape_cc::Product(dims, d + 1, dims.size());
    if (left == 0 || right == 0 || before % left != 0 || after % right != 0) continue;
    found.push_back({.dim = static_cast<int>(d), .outer = before / left, .inner = after / right});
  }
  std::ranges::stable_sort(found, {}, [&](const BatchPosition& position) {
    return batch_in_shape_cc::Rank(position, search);
  });
  return found;
}

}  // namespace orrery::importer
