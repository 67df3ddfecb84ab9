#include "lowering/kernel_listing.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "ir/op_info.h"
#include "lowering/blocks/fused_kernels.h"
#include "lowering/blocks/kernel_costs.h"
#include "transforms/memory/offload.h"

namespace orrery::lowering {
namespace kernel_listing_cc {
namespace {

bool IsKernelOp(const ir::Function& function, ir::OpId op) {
  const ir::OpClass op_class = function.info(op).op_class;
  const bool computes = op_class == ir::OpClass::kCompute || op_class == ir::OpClass::kOptimizer;
  return computes && function.result_count(op) > 0 &&
         transforms::HostWorkOf(function, op) == transforms::HostWork::kNone;
}

// One after the other, as they stand; `counts` has how many each kernel takes, parts of one where
// several share it.
void NumberLaunches(const FusedKernels& fused, const std::vector<double>& counts,
                    KernelListing& listing) {
  absl::flat_hash_map<int32_t, int32_t> numbers;  // of launches that several share
  for (size_t i = 0; i < listing.kernels.size(); ++i) {
    ListedKernel& kernel = listing.kernels[i];
    const int32_t shared = fused.LaunchOf(kernel.ops[0]);
    kernel.launches = shared >= 0 ? 1 : static_cast<int32_t>(std::lround(counts[i]));
    kernel.launch = listing.launches;
    if (shared >= 0) {
      kernel.launch = numbers.try_emplace(shared, listing.launches).first->second;
    }
    listing.launches = std::max(listing.launches, kernel.launch + kernel.launches);
  }
}

}  // namespace
}  // namespace kernel_listing_cc

Bytes KernelListing::bytes() const {
  Bytes sum(0);
  for (const ListedKernel& kernel : kernels) sum += kernel.reads + kernel.writes;
  return sum;
}

Flops KernelListing::flops() const {
  Flops sum(0);
  for (const ListedKernel& kernel : kernels) sum += kernel.flops;
  return sum;
}

Duration KernelListing::time() const {
  Duration sum(0);
  for (const ListedKernel& kernel : kernels) sum += kernel.time;
  return sum;
}

KernelListing ListKernels(const ir::Function& function, const TemplateContext& context) {
  const LocalTypes local(function);
  const FusedKernels fused(function, local, context);
  KernelCosts alone(function, local, context);
  KernelListing listing;
  absl::flat_hash_map<int32_t, size_t> of_group;
  std::vector<double> launches;  // of each kernel
  for (const ir::OpId op : function.order()) {
    if (!kernel_listing_cc::IsKernelOp(function, op)) continue;
    size_t number = listing.kernels.size();
    const int32_t group = fused.GroupOf(op);
    if (group != PointwiseGroups::kAlone) {
      number = of_group.try_emplace(group, number).first->second;
    }
    if (number == listing.kernels.size()) {
      listing.kernels.emplace_back();
      launches.push_back(0);
    }
    ListedKernel& kernel = listing.kernels[number];
    const KernelCosts::Cost* const share = fused.Find(op);
    const KernelCosts::Cost cost = share != nullptr ? *share : alone.Of(op);
    Bytes writes(0);
    for (int32_t i = 0; i < function.result_count(op); ++i) {
      const ir::ValueId result = function.result(op, i);
      if (fused.IsInside(result)) {
        ++kernel.inside;
      } else {
        writes += Bytes(local.BytesOf(result));
      }
    }
    writes = std::min(writes, cost.bytes);
    kernel.ops.push_back(op);
    kernel.writes += writes;
    kernel.reads += cost.bytes - writes;
    kernel.flops += cost.flops;
    kernel.time += cost.duration;
    launches[number] += cost.launches;
  }
  kernel_listing_cc::NumberLaunches(fused, launches, listing);
  for (ListedKernel& kernel : listing.kernels) {
    if (kernel.ops.size() > 1) kernel.needs = KernelNeedsOf(kernel.ops, function, local);
  }
  return listing;
}

}  // namespace orrery::lowering
