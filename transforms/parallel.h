#ifndef ORRERY_TRANSFORMS_PARALLEL_H_
#define ORRERY_TRANSFORMS_PARALLEL_H_

#include <functional>
#include <vector>

#include "absl/status/statusor.h"
#include "ir/function.h"
#include "transforms/plan/mesh.h"
#include "transforms/plan/parallel_plan.h"
#include "transforms/plan/plan_context.h"
#include "transforms/stages/pipeline.h"
#include "transforms/step_work.h"

namespace orrery::transforms {

/// Called after each of AllStepStages() that has something to do.
using StepObserver = std::function<void(const StepStage& stage, const StepWork& work)>;

/// Parallelizes a whole training step as the plan has it: runs AllStepStages() one after the other,
/// after all of their checks (CheckStep). Infeasible where a degree does not divide what it splits;
/// InvalidArgument for a plan that makes no sense.
absl::StatusOr<PipelinedStep> ParallelTransform3d(const ir::Function& function,
                                                  const ParallelPlan& plan,
                                                  const PlanContext& context = {},
                                                  const StepObserver& observer = {});

/// The same in all ways of which one may be the fastest once it is played: stages of a plan that
/// weighs them may begin at several places (CutsToTry). What comes before the cut is done once.
/// Infeasible where the first way is; others that are, are left out. Cancelled where the
/// context wants none.
absl::StatusOr<std::vector<PipelinedStep>> ParallelTransformWays(const ir::Function& function,
                                                                 const ParallelPlan& plan,
                                                                 const PlanContext& context);

}  // namespace orrery::transforms

#endif  // ORRERY_TRANSFORMS_PARALLEL_H_
