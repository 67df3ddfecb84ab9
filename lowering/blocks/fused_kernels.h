#ifndef ORRERY_LOWERING_BLOCKS_FUSED_KERNELS_H_
#define ORRERY_LOWERING_BLOCKS_FUSED_KERNELS_H_

#include "absl/container/flat_hash_map.h"
#include "ir/function.h"
#include "lowering/blocks/batched_kernels.h"
#include "lowering/blocks/block_buffers.h"
#include "lowering/blocks/kernel_costs.h"
#include "lowering/blocks/pointwise_groups.h"
#include "lowering/blocks/task_template.h"
#include "support/id_table.h"

namespace orrery::lowering {

/// The kernels that a compiler makes of the element-wise ops of one phase (PointwiseGroups), as
/// shares of the ops: together they take one launch and the traffic of the kernel, and values that
/// it keeps to itself take no memory; kernels that share a launch have a part of its start each.
/// Empty unless the context says so and the cost model has such
/// kernels.
class FusedKernels {
 public:
  FusedKernels(const ir::Function& function, const LocalTypes& local,
               const TemplateContext& context);

  /// The share of an op; null when it is a kernel of its own.
  const KernelCosts::Cost* Find(ir::OpId op) const {
    const auto found = shares_.find(op);
    return found == shares_.end() ? nullptr : &found->second;
  }

  /// The number of the kernel of several ops that it is in; PointwiseGroups::kAlone: none.
  int32_t GroupOf(ir::OpId op) const {
    return groups_.group.empty() ? PointwiseGroups::kAlone : groups_.group[op];
  }
  /// The number of the launch that its kernel shares with others; -1: none.
  int32_t LaunchOf(ir::OpId op) const {
    const auto found = launches_.find(op);
    return found == launches_.end() ? -1 : found->second;
  }
  /// Whether a value is never written to memory.
  bool IsInside(ir::ValueId value) const {
    return !groups_.inside.empty() && groups_.inside[value] != 0;
  }

  /// Which of the buffers hold nothing that is ever in memory; no table: none.
  IdTable<ir::ValueId, char> WithoutRoom(const TemplateBuffers& buffers) const;

 private:
  void ShareLaunch(const SharedLaunch& launch, Duration start, KernelCosts& alone, int32_t number);

  const ir::Function& function_;
  absl::flat_hash_map<ir::OpId, KernelCosts::Cost> shares_;
  PointwiseGroups groups_;  // no rows: none is fused
  absl::flat_hash_map<ir::OpId, int32_t> launches_;
};

}  // namespace orrery::lowering

#endif  // ORRERY_LOWERING_BLOCKS_FUSED_KERNELS_H_
