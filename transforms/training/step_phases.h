#ifndef ORRERY_TRANSFORMS_TRAINING_STEP_PHASES_H_
#define ORRERY_TRANSFORMS_TRAINING_STEP_PHASES_H_

#include <cstddef>
#include <cstdint>

#include "ir/function.h"

namespace orrery::transforms {

/// What runs for each microbatch before the loss and after it, and once a step. Where backward is
/// split, what nobody but the update waits for is kWeights.
enum class StepPhase : uint8_t { kForward, kBackward, kWeights, kUpdate };
inline constexpr size_t kStepPhaseCount = 4;

/// Whether the function holds a backward pass, or at least the beginning of one.
bool HasBackward(const ir::Function& function);

/// Ops that depend on a loss gradient are backward; optimizers, what is made from their results,
/// and the collectives that only make gradients whole for them or for the caller, are update; the
/// rest, the loss gradient itself included, is forward.
IdTable<ir::OpId, StepPhase> FindPhases(const ir::Function& function);

/// Moves backward ops to kWeights: those whose results nothing needs but the update, the caller and
/// others of them on the same stage, and which lead to the gradients of one layer's weights. So the
/// first stage, too, goes back through its layers with the rest, though no stage waits for it.
void SplitBackwardPhase(const ir::Function& function, const IdTable<ir::OpId, int32_t>& stage,
                        IdTable<ir::OpId, StepPhase>& phase);

/// Marks constants, buffers, and what is made from them alone without ranks exchanging anything,
/// but for what is returned: every stage may have a copy.
IdTable<ir::ValueId, char> FindFixedValues(const ir::Function& function);

/// Whether a backward op only puts together or cuts what forward has left. Each stage that wants
/// the result does that for itself.
bool ReshardsForward(const ir::Function& function, const IdTable<ir::OpId, StepPhase>& phase,
                     ir::OpId op);

}  // namespace orrery::transforms

#endif  // ORRERY_TRANSFORMS_TRAINING_STEP_PHASES_H_
