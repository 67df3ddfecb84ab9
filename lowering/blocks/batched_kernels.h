#ifndef ORRERY_LOWERING_BLOCKS_BATCHED_KERNELS_H_
#define ORRERY_LOWERING_BLOCKS_BATCHED_KERNELS_H_

#include <vector>

#include "ir/function.h"
#include "lowering/blocks/kernel_costs.h"
#include "lowering/blocks/kernel_room.h"
#include "lowering/blocks/pointwise_groups.h"

// Kernels side by side: what a compiler makes of element-wise kernels of which none waits for
// another, directly or by way of a third one.

namespace orrery::lowering {

/// Joins kernels that go over the same elements and read one value that is as large, so that it is
/// read once: groups, and ops that were alone. Two parts of a value, as of a Split, are two values.
/// At most PointwiseGroups::kMostMembers ops, and no more than there is room for.
void JoinSiblings(const ir::Function& function, const LocalTypes& local, FusedOps fused,
                  const KernelRoom& room, PointwiseGroups& groups);

/// The ops of a kernel, and kernels that share a launch.
using KernelOps = std::vector<ir::OpId>;
using SharedLaunch = std::vector<KernelOps>;

/// Kernels that do the same, op by op, with the same attributes, to tensors of the same types of
/// elements, read and written, of whatever sizes: one launch, whose blocks are told which tensor is
/// theirs (multi-tensor apply). Also of optimizers' updates. As many as the pointers of which CUDA
/// hands to a kernel: 4,096 bytes of arguments. Two or more each.
std::vector<SharedLaunch> FindSharedLaunches(const ir::Function& function, const LocalTypes& local,
                                             FusedOps fused, const PointwiseGroups& groups);

}  // namespace orrery::lowering

#endif  // ORRERY_LOWERING_BLOCKS_BATCHED_KERNELS_H_
