#ifndef ORRERY_TRANSFORMS_REDISTRIBUTION_EMIT_H_
#define ORRERY_TRANSFORMS_REDISTRIBUTION_EMIT_H_

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "ir/builder.h"
#include "transforms/redistribution/search.h"

namespace orrery::redistribution {

/// Adds the ops that carry out `plan` on `value`, one a step, and returns the value in its new
/// layout, called `name`. Unimplemented where a step has no op: of layouts with blocks, and of
/// replicas made summands.
absl::StatusOr<ir::ValueId> Emit(const RedistributionPlan& plan, ir::ValueId value,
                                 absl::string_view name, ir::Builder& builder);

}  // namespace orrery::redistribution

#endif  // ORRERY_TRANSFORMS_REDISTRIBUTION_EMIT_H_
