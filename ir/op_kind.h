#ifndef ORRERY_IR_OP_KIND_H_
#define ORRERY_IR_OP_KIND_H_

#include <cstdint>

// The names of op kinds. Only who names one includes this: a new line of ops.def compiles those
// files anew. All others do with the declaration in ir/op_kind_fwd.h.

namespace orrery::ir {

/// The op kinds, one a line of ops.def.
enum class OpKind : uint8_t {
#define ORRERY_OP(name, file) k##name,
#include "ir/ops.def"
#undef ORRERY_OP
};

}  // namespace orrery::ir

#endif  // ORRERY_IR_OP_KIND_H_
