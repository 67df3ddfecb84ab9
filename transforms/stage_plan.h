#ifndef ORRERY_TRANSFORMS_STAGE_PLAN_H_
#define ORRERY_TRANSFORMS_STAGE_PLAN_H_

#include <cstdint>

#include "absl/status/statusor.h"
#include "ir/function.h"

namespace orrery::transforms {

/// What runs for each microbatch before the loss, after it, and once a step.
enum class StepPhase : uint8_t { kForward, kBackward, kUpdate };

/// Where each op of a training step goes.
struct StagePlan {
  IdTable<ir::OpId, StepPhase> phase;
  IdTable<ir::OpId, int32_t> stage;    // of an optimizer: 0; it is split by parameter
  IdTable<ir::ValueId, int32_t> home;  // of an input: the stage that holds it; -1 if unused
};

/// Ops that depend on a loss gradient are backward; optimizers, and the collectives that only make
/// gradients whole for them or for the caller, are update; the rest, the loss gradient itself
/// included, is forward.
IdTable<ir::OpId, StepPhase> FindPhases(const ir::Function& function);

/// Marks constants, buffers, and what is made from them alone without ranks exchanging anything,
/// but for what is returned: every stage may have a copy.
IdTable<ir::ValueId, char> FindFixedValues(const ir::Function& function);

/// Whether a backward op only puts together or cuts what forward has left. Each stage that wants
/// the result does that for itself.
bool RespreadsForward(const ir::Function& function, const IdTable<ir::OpId, StepPhase>& phase,
                      ir::OpId op);

/// Cuts a training step into `stages`. A layer begins at a forward matrix product with a parameter
/// and holds what follows it. Layers that are all alike are cut into runs of which none is longer
/// than another by more than one, or equal with `equal_stages`; others where the
/// stages do about equally much and little crosses (see FindCuts). A backward op goes where the
/// parameters and forward values that it reads are. Infeasible when there are too few layers, or
/// they do not divide (kDivisibility), or a parameter is read by several stages (kUnsupported).
absl::StatusOr<StagePlan> PlanStages(const ir::Function& function, int64_t stages,
                                     bool equal_stages = false);

}  // namespace orrery::transforms

#endif  // ORRERY_TRANSFORMS_STAGE_PLAN_H_
