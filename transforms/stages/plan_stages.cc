#include <vector>

#include "support/status.h"
#include "transforms/stages/choose_stages.h"
#include "transforms/stages/stage_plan.h"
#include "transforms/stages/stage_units.h"
#include "transforms/training/step_phases.h"

// Where stages begin, and the plan with these.

namespace orrery::transforms {
namespace plan_stages_cc {
namespace {

// One stage holds everything; there is nothing to weigh.
StagePlan PlanOneStage(const ir::Function& function, const StageOptions& options) {
  StagePlan plan{.phase = FindPhases(function),
                 .stage = IdTable<ir::OpId, int32_t>(function.op_limit(), -1),
                 .home = IdTable<ir::ValueId, int32_t>(function.value_limit(), -1),
                 .repeated = IdTable<ir::OpId, char>(function.op_limit(), 0)};
  for (const ir::OpId op : function.order()) plan.stage[op] = 0;
  for (const ir::Input& input : function.inputs()) plan.home[input.value] = 0;
  if (options.split_backward) SplitBackwardPhase(function, plan.stage, plan.phase);
  return plan;
}

}  // namespace
}  // namespace plan_stages_cc

absl::Status CheckPlaces(const ir::Function& function, const StageOptions& options) {
  const StageChoice& choice = options.choice;
  const bool names = !choice.split_at.empty() || !choice.layers_per_stage.empty();
  if (options.stages == 1 || !names) return absl::OkStatus();
  const IdTable<ir::OpId, StepPhase> phase = FindPhases(function);
  return ChooseStages(function, phase, FindChain(function, phase), options).status();
}

absl::StatusOr<StagePlan> PlanStages(const ir::Function& function, const StageOptions& options) {
  if (options.stages == 1) return plan_stages_cc::PlanOneStage(function, options);
  const IdTable<ir::OpId, StepPhase> phase = FindPhases(function);
  const ForwardChain chain = FindChain(function, phase);
  ORRERY_ASSIGN_OR_RETURN(const std::vector<size_t> positions,
                          ChooseStages(function, phase, chain, options));
  ORRERY_ASSIGN_OR_RETURN(
      StagePlan plan,
      AssignStages(function, options, {.phase = phase, .chain = chain, .positions = positions}));
  plan.layers = CountLayers(function, chain, positions);
  return plan;
}

}  // namespace orrery::transforms
