#ifndef ORRERY_TRANSFORMS_DEAD_CODE_H_
#define ORRERY_TRANSFORMS_DEAD_CODE_H_

#include "ir/dead_code.h"

// The pass dead-code is what stands in ir/.

namespace orrery::transforms {

using ir::RemoveDeadOps;

}  // namespace orrery::transforms

#endif  // ORRERY_TRANSFORMS_DEAD_CODE_H_
