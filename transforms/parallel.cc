#include "transforms/parallel.h"

#include <algorithm>
#include <functional>
#include <utility>

#include "support/check.h"
#include "support/status.h"

namespace orrery::transforms {
namespace parallel_cc {
namespace {

using Stages = std::span<const StepStage* const>;

absl::Status Run(Stages stages, const StepObserver& observer, StepWork& work) {
  for (const StepStage* stage : stages) {
    if (stage->applies != nullptr && !stage->applies(work)) continue;
    ORRERY_RETURN_IF_ERROR(stage->run(work));
    if (observer) observer(*stage, work);
  }
  return absl::OkStatus();
}

// The stage of work that can be done in several ways.
size_t FindBranch() {
  const Stages all = AllStepStages();
  const auto branches = [](const StepStage* stage) { return stage->ways != nullptr; };
  const auto branch = std::ranges::find_if(all, branches);
  ORRERY_CHECK(branch != all.end()) << "no stage of work has several ways";
  return static_cast<size_t>(branch - all.begin());
}

}  // namespace
}  // namespace parallel_cc

absl::StatusOr<PipelinedStep> ParallelTransform3d(const ir::Function& function,
                                                  const ParallelPlan& plan,
                                                  const PlanContext& context,
                                                  const StepObserver& observer) {
  ORRERY_ASSIGN_OR_RETURN(ir::Mesh mesh, MakeMesh(plan));
  StepWork work{.whole = function, .plan = plan, .context = context, .mesh = std::move(mesh)};
  ORRERY_RETURN_IF_ERROR(CheckStep(work));
  ORRERY_RETURN_IF_ERROR(parallel_cc::Run(AllStepStages(), observer, work));
  return *std::move(work.step);
}

absl::StatusOr<std::vector<PipelinedStep>> ParallelTransformWays(const ir::Function& function,
                                                                 const ParallelPlan& plan,
                                                                 const PlanContext& context) {
  ORRERY_ASSIGN_OR_RETURN(ir::Mesh mesh, MakeMesh(plan));
  StepWork work{.whole = function, .plan = plan, .context = context, .mesh = std::move(mesh)};
  ORRERY_RETURN_IF_ERROR(CheckStep(work));
  const size_t branch = parallel_cc::FindBranch();
  const parallel_cc::Stages all = AllStepStages();
  ORRERY_RETURN_IF_ERROR(parallel_cc::Run(all.first(branch), {}, work));
  ORRERY_ASSIGN_OR_RETURN(auto ways, all[branch]->ways(work));
  if (context.stages.wants) std::erase_if(ways, std::not_fn(context.stages.wants));
  if (ways.empty()) return absl::CancelledError("these stages are not wanted");
  std::vector<PipelinedStep> steps;
  for (std::vector<size_t>& way : ways) {
    work.positions = std::move(way);
    const absl::Status status = parallel_cc::Run(all.subspan(branch), {}, work);
    if (status.ok()) {
      steps.push_back(*std::move(work.step));
    } else if (steps.empty() || !AsInfeasible(status).has_value()) {
      return status;
    }
  }
  return steps;
}

}  // namespace orrery::transforms
