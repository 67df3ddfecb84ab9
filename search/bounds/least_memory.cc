#include "search/bounds/least_memory.h"

#include <algorithm>

#include "transforms/memory/zero.h"
#include "transforms/step_work.h"

namespace orrery::search {

WeightBytes SumWeights(const Setting& setting) {
  WeightBytes sums;
  for (const ir::Input& input : setting.step.inputs()) {
    const auto size = static_cast<double>(SizeOf(setting.step.type(input.value)).count());
    if (ir::IsWeight(input.role)) sums.parameters += size;
    if (input.role == ir::InputRole::kState) sums.states += size;
  }
  return sums;
}

WeightBytes WeightSums::Of(const Setting& setting) {
  const std::lock_guard<std::mutex> lock(mutex_);
  const auto [known, is_new] = known_.try_emplace(&setting);
  if (is_new) known->second = SumWeights(setting);
  return known->second;
}

Bytes LeastMemory(const WeightBytes& sums, const ParallelPlan& plan) {
  const transforms::HeldParts held =
      transforms::PartsHeld(transforms::ZeroOf(plan), transforms::ZeroGroupOf(plan));
  const double states = plan.offload.optimizer ? 0 : sums.states;
  const double bytes = sums.parameters * held.parameters + states * held.states;
  const int64_t of_replica = plan.ranks() / plan.dp;
  return Bytes(static_cast<int64_t>(bytes / static_cast<double>(of_replica)));
}

Bytes LeastMemory(const Setting& setting, const ParallelPlan& plan) {
  return LeastMemory(SumWeights(setting), plan);
}

Bytes MemoryLimit(const Setting& setting, const ParallelPlan& plan) {
  const Bytes limit = setting.lowering.memory_limit;
  if (!setting.lowering.device_memory) return limit;
  const cluster::Cluster& cluster = setting.cluster;
  Bytes most = cluster.device.memory;
  if (cluster.kind_count() > 1) {
    most = Bytes(0);
    const int64_t ranks = plan.stage_meshes.empty() && plan.placement.empty()
                              ? std::min<int64_t>(plan.ranks(), cluster.size())
                              : cluster.size();  // they may be any
    for (int32_t rank = 0; rank < ranks; ++rank) {
      most = std::max(most, cluster.device_of(cluster::DeviceId(rank)).memory);
    }
  }
  return limit == Bytes(0) ? most : std::min(limit, most);
}

bool CannotFit(const Setting& setting, const ParallelPlan& plan) {
  return CannotFit(LeastMemory(setting, plan), setting, plan);
}

bool CannotFit(Bytes least, const Setting& setting, const ParallelPlan& plan) {
  const Bytes limit = MemoryLimit(setting, plan);
  return limit > Bytes(0) && least > limit;
}

}  // namespace orrery::search
