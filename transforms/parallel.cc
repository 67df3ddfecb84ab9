#include "transforms/parallel.h"

#include <utility>

#include "support/status.h"

namespace orrery::transforms {

absl::StatusOr<PipelinedStep> ParallelTransform3d(const ir::Function& function,
                                                  const ParallelPlan& plan,
                                                  const PlanContext& context,
                                                  const StepObserver& observer) {
  ORRERY_ASSIGN_OR_RETURN(ir::Mesh mesh, MakeMesh(plan));
  StepWork work{.whole = function, .plan = plan, .context = context, .mesh = std::move(mesh)};
  ORRERY_RETURN_IF_ERROR(CheckStep(work));
  for (const StepStage* stage : AllStepStages()) {
    if (stage->applies != nullptr && !stage->applies(work)) continue;
    ORRERY_RETURN_IF_ERROR(stage->run(work));
    if (observer) observer(*stage, work);
  }
  return *std::move(work.step);
}

}  // namespace orrery::transforms
