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
  const bool prices = context.cost_model.Fused(Flops(0), Bytes(0), *context.device).has_value();
  const bool all = context.kernels.fuses_pointwise;
  if ((!all && !context.kernels.fuses_dropout_sums) || !prices) return;
  const FusedOps fused = !all                           ? FusedOps::kDropoutSums
                         : context.kernels.copies_apart ? FusedOps::kAllButCopies
                                                        : FusedOps::kAll;
  PointwiseGroups groups = FindPointwiseGroups(function, local, fused);
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
  inside_ = std::move(groups.inside);
}

IdTable<ir::ValueId, char> FusedKernels::WithoutRoom(const TemplateBuffers& buffers) const {
  if (inside_.empty()) return {};
  IdTable<ir::ValueId, char> without(function_.value_limit(), 1);
  for (int32_t v = 0; v < function_.value_limit(); ++v) {
    const ir::ValueId value(v);
    if (inside_[value] == 0) without[buffers.buffer[value]] = 0;
  }
  return without;
}

}  // namespace orrery::lowering
