#ifndef ORRERY_TRANSFORMS_STAGES_CHOOSE_STAGES_H_
#define ORRERY_TRANSFORMS_STAGES_CHOOSE_STAGES_H_

#include <vector>

#include "absl/status/statusor.h"
#include "ir/function.h"
#include "transforms/stages/stage_plan.h"
#include "transforms/stages/stage_units.h"

namespace orrery::transforms {

/// The positions of `chain` at which stages begin, but the first stage, as `options` choose. Where
/// there are fewer whole layers than stages, layers are cut: at cut points, else before
/// products. Infeasible (kDivisibility) where that is not enough either, or where what the user
/// asks for makes another number of stages; an error for a pattern that is no regular expression.
absl::StatusOr<std::vector<size_t>> ChooseStages(const ir::Function& function,
                                                 const IdTable<ir::OpId, StepPhase>& phase,
                                                 const ForwardChain& chain,
                                                 const StageOptions& options);

/// Where stages may begin, as StageChoice::positions, in each way that may be the fastest once it
/// is played, as prices do not tell all that matters: beside what is weighed by cost, what needs
/// less memory and about as much time, and what leaves less choice (whole layers, equally many),
/// where it differs. Equally many layers are the last. One where nothing is weighed. Errors as of
/// PlanStages.
absl::StatusOr<std::vector<std::vector<size_t>>> CutsToTry(const ir::Function& function,
                                                           const StageOptions& options);

}  // namespace orrery::transforms

#endif  // ORRERY_TRANSFORMS_STAGES_CHOOSE_STAGES_H_
