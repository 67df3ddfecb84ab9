#ifndef ORRERY_LOWERING_BLOCKS_POINTWISE_GROUPS_H_
#define ORRERY_LOWERING_BLOCKS_POINTWISE_GROUPS_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "ir/function.h"
#include "lowering/blocks/kernel_costs.h"
#include "lowering/blocks/kernel_room.h"
#include "support/id_table.h"

// What a compiler of element-wise kernels makes of a function, as torch.compile's Inductor does
// (Ansel et al. 2024): ops that go over the same elements are one kernel, which reads what comes
// from outside once and writes what somebody outside reads.

namespace orrery::lowering {

/// Ops of a function that are one kernel. The ops themselves stay: each has its share of the kernel
/// where it stands.
struct PointwiseGroups {
  static constexpr int32_t kAlone = -1;
  /// Ops of one kernel at most: Inductor's max_fusion_size.
  static constexpr size_t kMostMembers = 64;
  /// What is between the parts of a kernel, which is looked through for a way from the one to the
  /// other: what stands further apart is not joined.
  static constexpr size_t kMostLookedThrough = 512;

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
///  - No way leads from a group through another kernel back into it; at most 64 ops are one kernel,
///  and no more than there is `room` for.
PointwiseGroups FindPointwiseGroups(const ir::Function& function, const LocalTypes& local,
                                    FusedOps fused = FusedOps::kAll, const KernelRoom& room = {});

/// What an op goes over, if such software may put it into a kernel with others.
std::optional<PointwiseSpace> FusableSpaceOf(const ir::Function& function, const LocalTypes& local,
                                             ir::OpId op, FusedOps fused);

/// What each member of a group adds to the traffic of its kernel: what it reads from outside before
/// any other member does, and what it makes for the outside.
std::vector<Bytes> TrafficOf(const std::vector<ir::OpId>& members, const ir::Function& function,
                             const LocalTypes& local, const PointwiseGroups& groups);

}  // namespace orrery::lowering

#endif  // ORRERY_LOWERING_BLOCKS_POINTWISE_GROUPS_H_
