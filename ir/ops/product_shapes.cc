#include "ir/ops/product_shapes.h"

#include <algorithm>

namespace orrery::ir {
namespace product_shapes_cc {
namespace {

ProductShape OverAllRows(const TensorType& x, int64_t columns) {
  const int64_t k = x.dims.back();
  return {.m = ElementCount(x.dims) / std::max<int64_t>(k, 1), .n = columns, .k = k};
}

}  // namespace
}  // namespace product_shapes_cc

ProductShapes LinearProducts(const OpTypes& op, const TypeList& results) {
  return {product_shapes_cc::OverAllRows(*op.operands[0], results[0].dims.back())};
}

ProductShapes LinearGroupProducts(const OpTypes& op, const TypeList& results) {
  int64_t columns = 0;
  for (const TensorType& y : results) columns += y.dims.back();
  return {product_shapes_cc::OverAllRows(*op.operands[0], columns)};
}

ProductShapes LinearGroupGradProducts(const OpTypes& op, const TypeList& results) {
  int64_t columns = 0;
  for (size_t i = results.size(); i < op.operands.size(); ++i) {
    columns += op.operands[i]->dims.back();
  }
  const ProductShape forward = product_shapes_cc::OverAllRows(*op.operands[0], columns);
  return {{.m = forward.m, .n = forward.k, .k = columns},
          {.m = forward.k, .n = columns, .k = forward.m}};
}

}  // namespace orrery::ir
