#ifndef ORRERY_TRANSFORMS_STEP_PHASES_H_
#define ORRERY_TRANSFORMS_STEP_PHASES_H_

#include <cstdint>

#include "ir/function.h"

namespace orrery::transforms {

/// What runs for each microbatch before the loss, after it, and once a step.
enum class StepPhase : uint8_t { kForward, kBackward, kUpdate };

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

}  // namespace orrery::transforms

#endif  // ORRERY_TRANSFORMS_STEP_PHASES_H_
