#include "lowering/blocks/fused_kernels.h"

#include <optional>
#include <vector>

#include "lowering/blocks/pointwise_groups.h"

namespace orrery::lowering {
namespace fused_kernels_cc {
namespace {

using Cost = KernelCosts::Cost;

// Parts a kernel among its ops as they move bytes. `costs` has their own flops and bytes.
void Part(Duration kernel, std::vector<Cost>& costs) {
  __extension__ using Wide = __int128;
  Wide all = 0, so_far = 0;
  for (const Cost& cost : costs) all += cost.bytes.count();
  Duration before(0);
  for (size_t i = 0; i < costs.size(); ++i) {
    so_far += costs[i].bytes.count();
    const bool last = i + 1 == costs.size();
    const Duration until =
        last || all == 0
            ? kernel
            : Duration(static_cast<int64_t>(Wide{kernel.picoseconds()} * so_far / all));
    costs[i].duration = until - before;
    before = until;
  }
}

}  // namespace
}  // namespace fused_kernels_cc

FusedKernels::FusedKernels(const ir::Function& function, const LocalTypes& local,
                           const TemplateContext& context)
    : function_(function) {
  const std::optional<Duration> start =
      context.cost_model.Fused(Flops(0), Bytes(0), *context.device);
  const StackKernels& kernels = context.kernels;
  const bool all = kernels.fuses_pointwise;
  if ((!all && !kernels.fuses_dropout_sums) || !start.has_value()) return;
  const FusedOps fused = !all                   ? FusedOps::kDropoutSums
                         : kernels.copies_apart ? FusedOps::kAllButCopies
                                                : FusedOps::kAll;
  const KernelRoom room = kernels.bounds_fusion ? KernelRoomOf(*context.device) : KernelRoom{};
  PointwiseGroups groups = FindPointwiseGroups(function, local, fused, room);
  if (kernels.batches_kernels) JoinSiblings(function, local, fused, room, groups);
  KernelCosts alone(function, local, context);
  for (const std::vector<ir::OpId>& members : groups.members) {
    const std::vector<Bytes> traffic = TrafficOf(members, function, local, groups);
    std::vector<KernelCosts::Cost> costs;
    Flops flops(0);
    Bytes bytes(0);
    for (size_t i = 0; i < members.size(); ++i) {
      costs.push_back({.duration = Duration(0),
                       .flops = alone.Of(members[i]).flops,
                       .bytes = traffic[i],
                       .launches = 1 / static_cast<double>(members.size())});
      flops += costs.back().flops;
      bytes += traffic[i];
    }
    fused_kernels_cc::Part(*context.cost_model.Fused(flops, bytes, *context.device), costs);
    const SourceShares sources = context.cost_model.SourcesOfFused(flops, bytes, *context.device);
    for (KernelCosts::Cost& cost : costs) cost.sources = sources;
    for (size_t i = 0; i < members.size(); ++i) shares_.emplace(members[i], costs[i]);
  }
  if (kernels.batches_kernels) {
    int32_t number = 0;
    for (const SharedLaunch& launch : FindSharedLaunches(function, local, fused, groups)) {
      ShareLaunch(launch, *start, alone, number++);
    }
  }
  groups_ = std::move(groups);
}

// Each kernel takes its work, and its share of one start.
void FusedKernels::ShareLaunch(const SharedLaunch& launch, Duration start, KernelCosts& alone,
                               int32_t number) {
  const auto count = static_cast<int64_t>(launch.size());
  const Duration saved(start.picoseconds() * (count - 1) / count);
  for (const KernelOps& members : launch) {
    std::vector<KernelCosts::Cost> costs;
    Duration all(0);
    for (const ir::OpId member : members) {
      const KernelCosts::Cost* const share = Find(member);
      costs.push_back(share != nullptr ? *share : alone.Of(member));
      all += costs.back().duration;
    }
    // An op of several kernels has other starts, too, and keeps all.
    if (all < start || (members.size() == 1 && costs[0].launches != 1)) continue;
    fused_kernels_cc::Part(all - saved, costs);
    for (size_t i = 0; i < members.size(); ++i) {
      costs[i].launches /= static_cast<double>(count);
      shares_.insert_or_assign(members[i], costs[i]);
      launches_[members[i]] = number;
    }
  }
}

IdTable<ir::ValueId, char> FusedKernels::WithoutRoom(const TemplateBuffers& buffers) const {
  if (groups_.inside.empty()) return {};
  IdTable<ir::ValueId, char> without(function_.value_limit(), 1);
  for (int32_t v = 0; v < function_.value_limit(); ++v) {
    const ir::ValueId value(v);
    if (groups_.inside[value] == 0) without[buffers.buffer[value]] = 0;
  }
  return without;
}

}  // namespace orrery::lowering
