#ifndef ORRERY_TRANSFORMS_DEAD_CODE_H_
#define ORRERY_TRANSFORMS_DEAD_CODE_H_

#include "ir/function.h"

namespace orrery::transforms {

/// Takes out of the order every op that no output and no send depends on. Returns whether there
/// was one. Inputs stay.
bool RemoveDeadOps(ir::Function& function);

}  // namespace orrery::transforms

#endif  // ORRERY_TRANSFORMS_DEAD_CODE_H_
