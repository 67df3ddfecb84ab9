#ifndef ORRERY_IR_OPS_REDUCTION_H_
#define ORRERY_IR_OPS_REDUCTION_H_

#include "ir/op_info.h"
#include "ir/ops/movement.h"

// What the ops that write over positions of a tensor do with what stands there: their attribute
// `reduction`.

namespace orrery::ir {

/// Ok when `reduction` is none, add, mul, max or min.
absl::Status CheckReduction(const AttributeSet& attributes);

/// Writes element `from` of `updates` over element `to` of `y`, or reduces both to one.
void Update(Tensor& y, int64_t to, const Tensor& updates, int64_t from,
            absl::string_view reduction);

/// Checks the operands of a scatter: data, indices and, unless the attribute `value` stands for
/// all of them, updates of the dims that are given.
absl::Status CheckScatter(const OpTypes& op, const Dims& updates);

/// One operation an update, unless it is but written.
double ScatterFlops(const OpTypes& op, const TypeList& results);

/// The gradients of a scatter `kind`: updates receive what `gather` reads from the positions that
/// were written, data what is left of the others.
absl::Status ScatterGradient(GradientContext& c, OpKind kind, OpKind gather,
                             const AttributeSet& positions);

}  // namespace orrery::ir

#endif  // ORRERY_IR_OPS_REDUCTION_H_
