#ifndef ORRERY_IR_OPS_PRODUCT_SHAPES_H_
#define ORRERY_IR_OPS_PRODUCT_SHAPES_H_

#include "ir/op_info.h"

// The matrix products of ops that multiply all rows of x, as OpInfo::products has them.

namespace orrery::ir {

/// Of Linear: one. Its second result is what the first is made of.
ProductShapes LinearProducts(const OpTypes& op, const TypeList& results);

/// Of LinearGroup: one, with the weights side by side.
ProductShapes LinearGroupProducts(const OpTypes& op, const TypeList& results);

/// Of LinearGroupGrad: of x, [rows,n] times [n,k], and of the weights side by side, [k,rows] times
/// [rows,n].
ProductShapes LinearGroupGradProducts(const OpTypes& op, const TypeList& results);

}  // namespace orrery::ir

#endif  // ORRERY_IR_OPS_PRODUCT_SHAPES_H_
