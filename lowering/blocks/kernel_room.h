#ifndef ORRERY_LOWERING_BLOCKS_KERNEL_ROOM_H_
#define ORRERY_LOWERING_BLOCKS_KERNEL_ROOM_H_

#include <cstdint>
#include <limits>
#include <optional>
#include <span>

#include "cluster/device.h"
#include "ir/function.h"
#include "lowering/blocks/kernel_costs.h"
#include "support/units.h"

// What a kernel of several element-wise ops needs of a core, and what there is.

namespace orrery::lowering {

/// What an op goes over: rows of so many elements each, which a reduction puts together.
struct PointwiseSpace {
  int64_t elements = 0;
  int64_t row = 1;  // 1: there is no reduction

  /// Whether one kernel may go over both, element by element.
  friend bool IsOneSpace(const PointwiseSpace& a, const PointwiseSpace& b) {
    return a.elements == b.elements && (a.row == b.row || a.row == 1 || b.row == 1);
  }
};

/// That of an op which a kernel may have beside others; nothing of one that is a kernel of its own,
/// or none.
std::optional<PointwiseSpace> PointwiseSpaceOf(const ir::Function& function,
                                               const LocalTypes& local, ir::OpId op);

/// Whether the op is a position in another value: no work, and no memory.
bool IsPosition(const ir::Function& function, ir::OpId op);

/// What a value is a position in, at last.
ir::ValueId RootOf(const ir::Function& function, ir::ValueId value);

/// Of a core, for one kernel. Without figures of a device there is no bound.
struct KernelRoom {
  int64_t live_values = std::numeric_limits<int64_t>::max();  // of each element, in registers
  Bytes held = Bytes(std::numeric_limits<int64_t>::max());    // of a row, in shared memory

  bool bounded() const { return live_values < std::numeric_limits<int64_t>::max(); }
};

/// Of a device of NVIDIA's: a thread has 4 elements at a time (16 bytes of fp32, the widest load),
/// each value of which takes a register, and 32 registers for addresses and counters, which is an
/// assumption; a block holds a row at a time.
KernelRoom KernelRoomOf(const cluster::Device& device);

/// What a kernel of these ops, in their order, needs. So many values are there at once: those that
/// were read or made and are read again, beside what the op in hand makes. And where a reduction
/// puts rows together, what of a row is read before and after it stays in shared memory.
struct KernelNeeds {
  int64_t live_values = 0;
  Bytes held = {};

  bool Fits(const KernelRoom& room) const {
    return live_values <= room.live_values && held <= room.held;
  }
};
KernelNeeds KernelNeedsOf(std::span<const ir::OpId> members, const ir::Function& function,
                          const LocalTypes& local);

}  // namespace orrery::lowering

#endif  // ORRERY_LOWERING_BLOCKS_KERNEL_ROOM_H_
