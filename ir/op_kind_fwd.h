#ifndef ORRERY_IR_OP_KIND_FWD_H_
#define ORRERY_IR_OP_KIND_FWD_H_

#include <cstdint>

// That there are op kinds, for who passes them on: their names are in ir/op_kind.h, their records
// in ir/op_info.h.

namespace orrery::ir {

/// The op kinds, one a line of ops.def.
enum class OpKind : uint8_t;

struct OpInfo;

/// The record of `kind`.
const OpInfo& GetOpInfo(OpKind kind);

}  // namespace orrery::ir

#endif  // ORRERY_IR_OP_KIND_FWD_H_
