#ifndef ORRERY_TRANSFORMS_PLAN_RANDOM_PLAN_TEST_UTIL_H_
#define ORRERY_TRANSFORMS_PLAN_RANDOM_PLAN_TEST_UTIL_H_

#include <cstdint>
#include <map>
#include <random>
#include <string>
#include <vector>

#include "transforms/plan/axis.h"
#include "transforms/plan/parallel_plan.h"
#include "transforms/schedules/schedule.h"

// For tests only.

namespace orrery::transforms {

/// Texts that the axis takes, the default's among them; none of an axis that nobody has thought of.
inline std::vector<std::string> TextsOf(const AxisInfo& axis) {
  static const auto& kTexts = *new std::map<std::string, std::vector<std::string>>{
      {"dp", {"1", "2", "4", "2147483648"}},
      {"hp", {"1", "2", "3", "8"}},
      {"pp", {"1", "2", "4", "16"}},
      {"cp", {"1", "2", "8"}},
      {"ep", {"1", "2", "3"}},
      {"micro-batches", {"1", "2", "24", "1024"}},
      {"schedule-file", {"", "orders.csv", "it's/a path.csv"}},
      {"slices", {"equal", "balanced", "1024,640,384", "7"}},
      {"chunks", {"0", "1", "2", "5"}},
      {"zero", {"0", "1", "2", "3"}},
      {"zero-group", {"0", "2", "16"}},
      {"prefetch", {"0", "1", "3"}},
      {"recompute",
       {"none", "selective", "full", "every:2", "match:gelu|norm", "match:it's a \\d{1,2}$"}},
      {"offload",
       {"none", "optimizer", "activations", "activations:a[0-9]+", "optimizer+activations",
        "optimizer+activations:x,y|z+"}},
      {"offload-prefetch", {"0", "1", "2"}},
      {"sharding", {"auto", "megatron"}},
      {"sequence-parallel", {"0", "1"}},
      {"context-attention", {"auto", "all-to-all", "all-gather", "ring"}},
      {"shard", {"w0=hp@1", "h\\.[0-9]+\\.attn$=cp@whole", "a=b=ep@0", "it's \"it\"=ep@2"}},
      {"stages-by", {"cost", "ops", "layers", "flops", "distir"}},
      {"split-at", {"", "h\\.(8|16)\\.", "^it's one$", "$HOME `pwd`*?"}},
      {"layers-per-stage", {"", "23,24,24,25", "1"}},
      {"order", {"hp,dp,pp", "pp,hp,dp", "ep,dp,pp,cp,hp"}},
      {"blocking", {"0", "1"}},
      {"bucket-size", {"none", "25MiB", "1000001B"}},
      {"algorithm", {"auto", "ring", "all-reduce=ring,all-gather=direct"}},
      {"dtype", {"model", "fp32", "fp16", "bf16", "fp8-mixed", "fp8"}}};
  if (axis.flag == "schedule") {
    std::vector<std::string> names;
    for (const PipelineSchedule* schedule : AllSchedules()) names.emplace_back(schedule->name);
    return names;
  }
  const auto found = kTexts.find(std::string(axis.flag));
  return found == kTexts.end() ? std::vector<std::string>() : found->second;
}

/// A plan whose axes each have the default or one of TextsOf. It need not make sense.
inline ParallelPlan RandomPlan(uint32_t seed) {
  std::mt19937 random(seed);
  ParallelPlan plan;
  for (const AxisInfo* axis : AllAxes()) {
    const std::vector<std::string> texts = TextsOf(*axis);
    const size_t times = axis->form == AxisForm::kMany ? random() % 3 : random() % 2;
    for (size_t i = 0; i < times && !texts.empty(); ++i) {
      axis->parse(texts[random() % texts.size()], plan).IgnoreError();
    }
  }
  return plan;
}

}  // namespace orrery::transforms

#endif  // ORRERY_TRANSFORMS_PLAN_RANDOM_PLAN_TEST_UTIL_H_
