#include "ir/op_info.h"

namespace orrery::ir {

extern const OpInfo kMergeAttentionOp = {.name = "MergeAttention", .summary = "to be written"};

}  // namespace orrery::ir
