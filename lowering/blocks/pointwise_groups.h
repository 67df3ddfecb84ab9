#ifndef ORRERY_LOWERING_BLOCKS_POINTWISE_GROUPS_H_
#define ORRERY_LOWERING_BLOCKS_POINTWISE_GROUPS_H_

#include <cstdint>
#include <vector>

#include "ir/function.h"
#include "lowering/blocks/kernel_costs.h"
#include "support/id_table.h"

// What a compiler of element-wise kernels makes of a function, as torch.compile's Inductor does
// (Ansel et al. 2024): ops that go over the same elements are one kernel, which reads what comes
// from outside once and writes what somebody outside reads.

namespace orrery::lowering {

/// Ops of a function that are one kernel. The ops themselves stay: each has its share of the kernel
/// where it stands.
struct PointwiseGroups {
  static constexpr int32_t kAlone = -1;

  std::vector<std::vector<ir::OpId>> members;  // of each group two or more, in their order
  IdTable<ir::OpId, int32_t> group;            // of each op; kAlone: none
  /// Values that members of one group alone make and read: they are never written to memory.
  IdTable<ir::ValueId, char> inside;
};

/// Which element-wise ops software fuses: all that a compiler finds, or a dropout with the sum
/// behind it, as Megatron has a kernel for (bias_dropout_fusion).
enum class FusedOps : uint8_t {
  kAll,
  kAllButCopies,  // of 8 or 4 bits, which are kernels of their own (StackKernels::copies_apart)
  kDropoutSums,
};

/// Puts ops into groups:
///
///  - A group has element-wise ops, whatever moves elements (Transpose, Concat, Pad), and
///  reductions over the last dimensions; matrix products, norms, softmax and attention are kernels
///  of their own. Views between its ops are positions, no work.
///  - An op joins the groups that make its operands if it goes over as many elements: or, behind a
///  reduction, over as many rows. One of another size joins what nobody else reads: that is
///  computed where it is read.
///  - No way leads from a group through another kernel back into it; at most 64 ops are one kernel.
PointwiseGroups FindPointwiseGroups(const ir::Function& function, const LocalTypes& local,
                                    FusedOps fused = FusedOps::kAll);

/// What each member of a group adds to the traffic of its kernel: what it reads from outside before
/// any other member does, and what it makes for the outside.
std::vector<Bytes> TrafficOf(const std::vector<ir::OpId>& members, const ir::Function& function,
                             const LocalTypes& local, const PointwiseGroups& groups);

}  // namespace orrery::lowering

#endif  // ORRERY_LOWERING_BLOCKS_POINTWISE_GROUPS_H_
