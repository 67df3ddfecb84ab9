#include "transforms/parallel.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "support/status.h"
#include "transforms/training/microbatch.h"

namespace orrery::transforms {
namespace parallel_cc {
namespace {

absl::Status CheckWhole(const ir::Function& function, const ParallelPlan& plan,
                        const PlanContext& context) {
  const int64_t devices = std::ssize(context.devices);
  if (devices != 0 && devices != plan.ranks()) {
    return absl::InvalidArgumentError(
        absl::StrCat("got ", devices, " devices for ", plan.ranks(), " ranks; wanted one each"));
  }
  if (function.mesh().empty()) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(function.name(), " is sharded over ",
                                                 ir::ToString(function.mesh()),
                                                 " already; wanted a function of one device"));
}

}  // namespace
}  // namespace parallel_cc

absl::StatusOr<PipelinedStep> ParallelTransform3d(const ir::Function& function,
                                                  const ParallelPlan& plan,
                                                  const PlanContext& context,
                                                  const StepObserver& observer) {
  ORRERY_ASSIGN_OR_RETURN(ir::Mesh mesh, MakeMesh(plan));
  ORRERY_RETURN_IF_ERROR(parallel_cc::CheckWhole(function, plan, context));
  StepWork work{.whole = function, .plan = plan, .context = context, .mesh = std::move(mesh)};
  for (const StepStage& stage : AllStepStages()) {
    if (stage.check != nullptr) ORRERY_RETURN_IF_ERROR(stage.check(work));
  }
  for (const StepStage& stage : AllStepStages()) {
    if (stage.applies != nullptr && !stage.applies(work)) continue;
    ORRERY_RETURN_IF_ERROR(stage.run(work));
    if (observer) observer(stage, work);
  }
  work.step->devices = context.devices;
  work.step->microbatch_size = BatchSize(work.part()).value_or(0);
  return *std::move(work.step);
}

}  // namespace orrery::transforms
