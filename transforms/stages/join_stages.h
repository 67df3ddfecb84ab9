#ifndef ORRERY_TRANSFORMS_STAGES_JOIN_STAGES_H_
#define ORRERY_TRANSFORMS_STAGES_JOIN_STAGES_H_

#include <vector>

#include "absl/status/statusor.h"
#include "transforms/stages/pipeline.h"

// Stages whose ranks are not alike. How a stage is sharded follows from its own mesh alone, so each
// is taken from the step of a whole plan with that mesh, cut at the same layers.

namespace orrery::transforms {

/// The step whose stages at position p are those of *steps[p], on the ranks of unequal.places[p].
/// Origins are numbered anew; what one step sends and the other receives is one value: that of the
/// same name, or, of those without one, of the same place in the order. Each step has the same
/// stages at the same positions, of which there are as many as steps, and but for a placement each
/// has one. Infeasible (kUnsupported) where what crosses a
/// boundary is not the same on both sides.
absl::StatusOr<PipelinedStep> JoinStages(const std::vector<const PipelinedStep*>& steps,
                                         UnequalStages unequal);

}  // namespace orrery::transforms

#endif  // ORRERY_TRANSFORMS_STAGES_JOIN_STAGES_H_
