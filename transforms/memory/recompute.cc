#include "transforms/memory/recompute.h"

#include <array>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "transforms/memory/keep_less.h"
#include "transforms/memory/keep_plan.h"
#include "transforms/memory/rematerialize.h"

namespace orrery::transforms {
namespace recompute_cc {
namespace {

std::vector<std::vector<LayerRange>> LayersOf(const PipelinedStep& step,
                                              const RecomputePolicy& policy) {
  if (!policy.record->by_layers) return std::vector<std::vector<LayerRange>>(step.stages.size());
  std::vector<const StageFunction*> forwards;
  for (const PipelineStage& stage : step.stages) forwards.push_back(&stage.forward);
  return FindLayers(forwards);
}

std::string WhatIsLacking(const PipelinedStep& step, const RecomputePolicy& policy) {
  if (policy.record->lacks == nullptr) return "";
  std::vector<const ir::Function*> forwards;
  for (const PipelineStage& stage : step.stages) forwards.push_back(&stage.forward.function);
  return policy.record->lacks(forwards, policy);
}

// What forward keeps in a stage, and what the phases after it do for the rest. Returns how many
// values that makes fewer.
int64_t RecomputeStage(const KeepRule& rule, std::span<const LayerRange> layers,
                       PipelineStage& stage) {
  const std::array<StageFunction*, 2> later = {&stage.backward, &stage.weights};
  const std::array<const StageFunction*, 1> others = {&stage.update};
  KeepPlan plan = PlanToKeep(stage.forward.function, rule, layers, FindSaved(stage.forward, later));
  if (rule.fuses) KeepLess(stage.forward, later, plan);
  if (plan.dropped > 0) Rematerialize(plan, later, others, stage.forward);
  return plan.dropped;
}

}  // namespace
}  // namespace recompute_cc

bool Rematerializes(const KeepRule& rule) {
  return rule.policy.record->mark != nullptr || rule.gathers || rule.fuses;
}

absl::Status Recompute(PipelinedStep& step, const KeepRule& rule) {
  if (!Rematerializes(rule)) return absl::OkStatus();
  if (std::string lacks = recompute_cc::WhatIsLacking(step, rule.policy); !lacks.empty()) {
    return absl::InvalidArgumentError(absl::StrCat("'", ToString(rule.policy), "': ", lacks));
  }
  int64_t dropped = 0;
  const std::vector<std::vector<LayerRange>> layers = recompute_cc::LayersOf(step, rule.policy);
  for (size_t s = 0; s < step.stages.size(); ++s) {
    dropped += recompute_cc::RecomputeStage(rule, layers[s], step.stages[s]);
  }
  if (dropped > 0 || !rule.policy.record->finds) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      "'", ToString(rule.policy),
      "': finds no value that forward keeps for backward; opt names them with `stages`"));
}

}  // namespace orrery::transforms
