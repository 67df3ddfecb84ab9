#include "transforms/parallel.h"

#include <algorithm>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/hash/hash.h"
#include "absl/strings/str_cat.h"
#include "support/check.h"
#include "support/status.h"

namespace orrery::transforms {
namespace parallel_cc {
namespace {

using Stages = std::span<const StepStage* const>;

bool Applies(const StepStage& stage, const StepWork& work) {
  return stage.applies == nullptr || stage.applies(work);
}

// The key of what the stage will make.
void AddToKey(const StepStage& stage, StepWork& work) {
  if (work.key.empty()) return;
  if (stage.reads == nullptr) {
    work.key.clear();
    return;
  }
  absl::StrAppend(&work.key, "/", stage.name, " ", stage.reads(work));
}

absl::Status Run(Stages stages, const StepObserver& observer, StepWork& work) {
  for (const StepStage* stage : stages) {
    if (!Applies(*stage, work)) continue;
    AddToKey(*stage, work);
    ORRERY_RETURN_IF_ERROR(stage->run(work));
    if (observer) observer(*stage, work);
  }
  return absl::OkStatus();
}

// Where devices are given, places on the mesh do not tell where ranks are.
std::string RootOf(const PlanContext& context) {
  return context.parts.store != nullptr && context.devices.empty() ? context.parts.root : "";
}

int64_t HeldBytes(const StageFunction& part) {
  return part.function.held_bytes() +
         static_cast<int64_t>(part.origins.capacity() * sizeof(ir::ValueId));
}

uint64_t NumberOfStep(const PipelinedStep& step) {
  size_t number = absl::HashOf(ir::ToString(step.mesh), step.microbatches, step.ranks, step.layers,
                               step.microbatch_size, step.devices, ToString(step.gathered),
                               ToString(step.padded));
  for (const PipelineStage& stage : step.stages) {
    for (const StageFunction* part : stage.parts()) {
      number = absl::HashOf(number, NumberOfAll(part->function), part->origins);
    }
  }
  return number;
}

// What a stage of work left of a step that is cut.
struct StepPart {
  absl::StatusOr<PipelinedStep> step;

  Bytes held() const {
    int64_t bytes = 0;
    if (!step.ok()) return Bytes(bytes);
    for (const PipelineStage& stage : step->stages) {
      for (const StageFunction* part : stage.parts()) bytes += HeldBytes(*part);
    }
    return Bytes(bytes);
  }
  uint64_t number() const { return step.ok() ? NumberOfStep(*step) : NumberOf(step.status()); }
};

// Places to cut a step.
struct WaysPart {
  absl::StatusOr<std::vector<std::vector<size_t>>> ways;
  Bytes held() const { return Bytes(256); }
  uint64_t number() const { return ways.ok() ? absl::HashOf(*ways) : NumberOf(ways.status()); }
};

absl::StatusOr<std::vector<std::vector<size_t>>> WaysOf(const StepStage& branch,
                                                        const StepWork& work) {
  if (work.key.empty() || branch.ways_read == nullptr) return branch.ways(work);
  return work.context.parts.store
      ->FindOrMake<WaysPart>("stages", absl::StrCat(work.key, "/", branch.ways_read(work)),
                             [&] { return WaysPart{branch.ways(work)}; })
      ->ways;
}

// From the cut on. The last stage leaves what is kept: steps take about as long to copy as a stage
// takes to make them. First askers make it for themselves: in most spaces nobody asks again.
absl::StatusOr<PipelinedStep> RunFromCut(Stages stages, StepWork& work) {
  for (const StepStage* stage : stages) {
    if (Applies(*stage, work)) AddToKey(*stage, work);
  }
  const std::string key = std::exchange(work.key, "");
  const auto make = [&]() -> absl::StatusOr<PipelinedStep> {
    ORRERY_RETURN_IF_ERROR(Run(stages, {}, work));
    return *std::move(work.step);
  };
  PartStore* const store = work.context.parts.store;
  if (key.empty() || !store->WasAskedFor("step", key)) return make();
  return store->FindOrMake<StepPart>("step", key, [&] { return StepPart{make()}; })->step;
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
  StepWork work{.whole = function,
                .plan = plan,
                .context = context,
                .mesh = std::move(mesh),
                .key = parallel_cc::RootOf(context)};
  ORRERY_RETURN_IF_ERROR(CheckStep(work));
  const size_t branch = parallel_cc::FindBranch();
  const parallel_cc::Stages all = AllStepStages();
  ORRERY_RETURN_IF_ERROR(parallel_cc::Run(all.first(branch), {}, work));
  ORRERY_ASSIGN_OR_RETURN(auto ways, parallel_cc::WaysOf(*all[branch], work));
  if (context.stages.wants) std::erase_if(ways, std::not_fn(context.stages.wants));
  if (ways.empty()) return absl::CancelledError("these stages are not wanted");
  std::vector<PipelinedStep> steps;
  const std::string before = work.key;
  for (std::vector<size_t>& way : ways) {
    work.positions = std::move(way);
    work.key = before;
    absl::StatusOr<PipelinedStep> step = parallel_cc::RunFromCut(all.subspan(branch), work);
    if (step.ok()) {
      steps.push_back(*std::move(step));
    } else if (steps.empty() || !AsInfeasible(step.status()).has_value()) {
      return step.status();
    }
  }
  return steps;
}

}  // namespace orrery::transforms
