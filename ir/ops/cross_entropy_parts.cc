#include "ir/op_info.h"

namespace orrery::ir {

extern const OpInfo kCrossEntropyPartsOp = {.name = "CrossEntropyParts", .summary = "to be written"};
extern const OpInfo kCrossEntropyOfPartsOp = {.name = "CrossEntropyOfParts", .summary = "to be written"};
extern const OpInfo kCrossEntropyPartsGradOp = {.name = "CrossEntropyPartsGrad", .summary = "to be written"};

}  // namespace orrery::ir
