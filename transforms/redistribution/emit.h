#ifndef ORRERY_TRANSFORMS_REDISTRIBUTION_EMIT_H_
#define ORRERY_TRANSFORMS_REDISTRIBUTION_EMIT_H_

#include <optional>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "ir/builder.h"
#include "transforms/redistribution/search.h"

namespace orrery::transforms::redistribution {

/// The op that carries out a step of that kind; nothing where there is none.
std::optional<ir::OpKind> OpOf(MoveKind kind);
/// The kind of step that an op carries out; nothing of other ops.
std::optional<MoveKind> StepOf(ir::OpKind op);

/// Adds the op of a step that has one. Of a permutation `after` is read, of others kind, axes and
/// dimensions, and of `after` the blocks and reductions that they lead to. A dimension that does
/// not divide is split unevenly: the last ranks have less, or nothing.
ir::ValueId EmitStep(const Step& step, ir::ValueId value, absl::string_view name,
                     ir::Builder& builder);

/// Adds the ops that carry out `plan` on `value`, one a step, and returns the value in its new
/// layout, called `name`. kUnimplemented, or the error of the op, for a step that no op carries
/// out: where ranks put what they hold in another order, and where axes that are not the innermost
/// leave a dimension or come to it, as tensorcraft's do.
absl::StatusOr<ir::ValueId> Emit(const RedistributionPlan& plan, ir::ValueId value,
                                 absl::string_view name, ir::Builder& builder);

}  // namespace orrery::transforms::redistribution

#endif  // ORRERY_TRANSFORMS_REDISTRIBUTION_EMIT_H_
