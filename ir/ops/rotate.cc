#include "ir/op_info.h"

namespace orrery::ir {

extern const OpInfo kRotateOp = {.name = "Rotate", .summary = "to be written"};

}  // namespace orrery::ir
