#ifndef ORRERY_TRANSFORMS_SHARDING_EMIT_SHARDED_H_
#define ORRERY_TRANSFORMS_SHARDING_EMIT_SHARDED_H_

#include "absl/status/statusor.h"
#include "ir/function.h"
#include "transforms/sharding/sharding_choices.h"

namespace orrery::transforms {

/// The function of `problem` on its mesh, as `chosen` has it: each change of a layout is an op of
/// its own, made once for each value and layout, before its first use.
absl::StatusOr<ir::Function> EmitSharded(const AxisProblem& problem, const ChosenShardings& chosen,
                                         LayoutWays& ways);

}  // namespace orrery::transforms

#endif  // ORRERY_TRANSFORMS_SHARDING_EMIT_SHARDED_H_
