#include <algorithm>
#include <cstddef>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "ir/op_kind.h"
#include "support/status.h"
#include "transforms/stages/choose_stages.h"
#include "transforms/stages/pipeline.h"
#include "transforms/stages/place_chain.h"
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

// By how many other sets, one after the other, an op waits for: a sum of gradients, which waits for
// a branch elsewhere, does not hold up those of branches here.
std::vector<ir::OpId> OrderByWaits(const ir::Function& function, const StagePlan& plan) {
  IdTable<ir::OpId, int32_t> level(function.op_limit(), 0);
  const auto set_of = [&](ir::OpId op) { return plan.sets[static_cast<size_t>(plan.stage[op])]; };
  for (const ir::OpId op : function.order()) {
    for (const ir::ValueId operand : function.operands(op)) {
      const ir::OpId maker = function.producer(operand);
      if (!maker.valid()) continue;
      level[op] = std::max(level[op], level[maker] + (set_of(maker) == set_of(op) ? 0 : 1));
    }
  }
  std::vector<ir::OpId> order = function.order();
  std::ranges::stable_sort(order, {}, [&](ir::OpId op) { return level[op]; });
  return order;
}

// Whole layers of the model that begin in each stage: those whose first op is there. What reshards
// it is where the value is made.
std::vector<int64_t> LayersOfPlaced(const ir::Function& function, const ForwardChain& chain,
                                    const StagePlan& plan) {
  std::vector<int64_t> layers(plan.sets.size(), 0);
  for (const StageUnit& unit : FindUnits(function, chain, UnitSize::kLayers)) {
    const auto op =
        std::find_if(chain.ops.begin() + static_cast<std::ptrdiff_t>(unit.begin), chain.ops.end(),
                     [&](ir::OpId of_unit) { return !Reshards(function, of_unit); });
    if (unit.layer && op != chain.ops.end()) ++layers[static_cast<size_t>(plan.stage[*op])];
  }
  return layers;
}

absl::StatusOr<StagePlan> PlanPlaced(const ir::Function& function, const StageOptions& options) {
  const IdTable<ir::OpId, StepPhase> phase = FindPhases(function);
  const ForwardChain chain = FindChain(function, phase);
  const PlacedChain placed = PlaceChain(function, chain, options.choice.placement);
  StageOptions own = options;
  own.stages = std::ssize(placed.sets);
  own.ranks = placed.sets;
  if (own.stages <= 1) {
    StagePlan plan = PlanOneStage(function, own);
    plan.sets = {placed.sets.empty() ? 0 : placed.sets.front()};
    return plan;
  }
  // An addition hands on one gradient to both of its operands: then names may be of another value
  // than the one whose gradient an op wants, and one step of many makes it behind where it has to
  // be.
  absl::StatusOr<StagePlan> found;
  for (const Mirroring mirroring : {Mirroring::kByNames, Mirroring::kByReads, Mirroring::kNone}) {
    found = AssignStages(function, own,
                         {.phase = phase,
                          .chain = placed.chain,
                          .positions = placed.positions,
                          .mirroring = mirroring});
    if (found.ok() || !AsInfeasible(found.status()).has_value()) break;
  }
  ORRERY_RETURN_IF_ERROR(found.status());
  StagePlan plan = *std::move(found);
  plan.sets = placed.sets;
  plan.layers = LayersOfPlaced(function, chain, plan);
  // Ranks have the data, so that each stage cuts out its own.
  for (const ir::OpId op : placed.chain.ops) {
    const bool deals = function.kind(op) == ir::OpKind::kAllSlice;
    if (deals && !function.producer(function.operands(op)[0]).valid()) plan.repeated[op] = 1;
  }
  plan.order = OrderByWaits(function, plan);
  return plan;
}

}  // namespace
}  // namespace plan_stages_cc

absl::Status CheckStageCount(const PipelineShape& shape, int64_t ops) {
  const int64_t stages = int64_t{shape.ranks} * shape.chunks;
  if (stages <= ops) return absl::OkStatus();
  return InfeasibleStatus({.reason = InfeasibleReason::kDivisibility,
                           .detail = absl::StrCat(ops, " ops do not cut into ", stages,
                                                  " stages; try fewer of `chunks` or `pp`")});
}

absl::Status CheckPlaces(const ir::Function& function, const StageOptions& options) {
  const StageChoice& choice = options.choice;
  if (!choice.placement.empty()) {
    const ForwardChain chain = FindChain(function, FindPhases(function));
    return CheckPlacement(function, chain, choice.placement);
  }
  const bool names = !choice.split_at.empty() || !choice.layers_per_stage.empty();
  if (options.stages == 1 || !names) return absl::OkStatus();
  const IdTable<ir::OpId, StepPhase> phase = FindPhases(function);
  return ChooseStages(function, phase, FindChain(function, phase), options).status();
}

absl::StatusOr<StagePlan> PlanStages(const ir::Function& function, const StageOptions& options) {
  if (!options.choice.placement.empty()) return plan_stages_cc::PlanPlaced(function, options);
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
