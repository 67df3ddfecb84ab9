#ifndef ORRERY_LOWERING_BLOCKS_FUSED_KERNELS_H_
#define ORRERY_LOWERING_BLOCKS_FUSED_KERNELS_H_

#include "absl/container/flat_hash_map.h"
#include "ir/function.h"
#include "lowering/blocks/block_buffers.h"
#include "lowering/blocks/kernel_costs.h"
#include "lowering/blocks/task_template.h"
#include "support/id_table.h"

namespace orrery::lowering {

/// The kernels that a compiler makes of the element-wise ops of one phase (PointwiseGroups), as
/// shares of the ops: together they take one launch and the traffic of the kernel, and values that
/// it keeps to itself take no memory. Empty unless the context says so and the cost model has such
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

  /// Which of the buffers hold nothing that is ever in memory; no table: none.
  IdTable<ir::ValueId, char> WithoutRoom(const TemplateBuffers& buffers) const;

 private:
  const ir::Function& function_;
  absl::flat_hash_map<ir::OpId, KernelCosts::Cost> shares_;
  IdTable<ir::ValueId, char> inside_;  // of values; no rows: none is
};

}  // namespace orrery::lowering

#endif  // ORRERY_LOWERING_BLOCKS_FUSED_KERNELS_H_
