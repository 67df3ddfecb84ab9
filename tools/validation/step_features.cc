#include "tools/validation/step_features.h"

#include <algorithm>
#include <utility>

#include "absl/strings/match.h"
#include "ir/function.h"
#include "ir/op_kind.h"
#include "transforms/plan/axis.h"
#include "transforms/training/training_step.h"

namespace orrery::tools {

StepFeatures FeaturesOf(const search::Setting& setting, const transforms::ParallelPlan& plan,
                        absl::string_view stack) {
  StepFeatures features = {.device = setting.cluster.kind(0).name,
                           .dtype = transforms::FindAxis("dtype")->print(plan),
                           .stack = std::string(stack),
                           .devices = plan.dp * plan.hp * plan.pp * plan.cp * plan.ep,
                           .tp = plan.hp,
                           .pp = plan.pp,
                           .dp = plan.dp * plan.ep,
                           .cp = plan.cp,
                           .ep = plan.ep,
                           .tokens = setting.tokens_a_sample};
  for (const ir::Input& input : setting.step.inputs()) {
    if (!ir::IsWeight(input.role)) continue;
    features.parameters += ir::ElementCount(setting.step.type(input.value).dims);
  }
  features.mixture = std::ranges::any_of(setting.step.order(), [&](ir::OpId op) {
    return setting.step.kind(op) == ir::OpKind::kDispatch;
  });
  features.forward = !transforms::IsTrained(setting.step);
  return features;
}

std::string ArchitectureOf(absl::string_view device) {
  constexpr std::pair<absl::string_view, absl::string_view> kArchitectures[] = {
      {"v100", "Volta"},     {"a100", "Ampere"},    {"h100", "Hopper"},    {"h200", "Hopper"},
      {"h800", "Hopper"},    {"gh200", "Hopper"},   {"b200", "Blackwell"}, {"gb200", "Blackwell"},
      {"b300", "Blackwell"}, {"gb300", "Blackwell"}};
  for (const auto& [name, architecture] : kArchitectures) {
    if (absl::StartsWith(device, name)) return std::string(architecture);
  }
  return std::string(device);
}

}  // namespace orrery::tools
