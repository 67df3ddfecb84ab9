#ifndef ORRERY_IR_DEAD_CODE_H_
#define ORRERY_IR_DEAD_CODE_H_

#include "ir/function.h"

namespace orrery::ir {

/// Takes out of the order every op that no output and no send depends on. Returns whether there
/// was one. Inputs stay.
bool RemoveDeadOps(Function& function);

}  // namespace orrery::ir

#endif  // ORRERY_IR_DEAD_CODE_H_
