#ifndef ORRERY_IR_OPS_FUSING_H_
#define ORRERY_IR_OPS_FUSING_H_

#include <cstdint>

#include "ir/op_kind_fwd.h"

// Which ops a compiler of element-wise kernels takes into one, as torch.compile's Inductor does.

namespace orrery::ir {

/// What an op goes over, as far as that lets others go over it in the same kernel.
enum class Fusing : uint8_t {
  kNever,     // a kernel of its own: products, norms, attention, losses, collectives; or none
  kElements,  // element by element, or moves elements
  kRows,      // a reduction of its `axes`
};

/// That of a kind. Element-wise is what is split like its elements (ElementwiseRule), and a few
/// that move elements besides.
Fusing FusingOf(OpKind kind);

}  // namespace orrery::ir

#endif  // ORRERY_IR_OPS_FUSING_H_
