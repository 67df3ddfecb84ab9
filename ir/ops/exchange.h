#ifndef ORRERY_IR_OPS_EXCHANGE_H_
#define ORRERY_IR_OPS_EXCHANGE_H_

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "ir/op_info.h"

// What ops that change a layout have in common.

namespace orrery::ir {

/// The axes of the attribute `axes`; an error of one line.
absl::StatusOr<AxisList> AxesOfOp(const OpTypes& op);

/// The dimension that the attribute `name` says; an error where its operand has no such.
absl::StatusOr<size_t> DimOfOp(const OpTypes& op, absl::string_view name);

/// Dtype and dims of the operand, and its sharding, which the op changes.
absl::Status InferSameAsOperand(const OpTypes& op, TypeList& results);

/// An empty place for what the rank at `position` of the group holds of the result.
Tensor PlaceOf(const GroupExchange& exchange);

/// What the rank holds of the result, each element from a rank of the group that has it; of partial
/// values one with the same summand.
Tensor FetchHeld(const GroupExchange& exchange);

}  // namespace orrery::ir

#endif  // ORRERY_IR_OPS_EXCHANGE_H_
