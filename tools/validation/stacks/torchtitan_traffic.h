#ifndef ORRERY_TOOLS_VALIDATION_STACKS_TORCHTITAN_TRAFFIC_H_
#define ORRERY_TOOLS_VALIDATION_STACKS_TORCHTITAN_TRAFFIC_H_

#include "tools/validation/software_stack.h"

namespace orrery::tools {

/// What torchtitan's kernels move besides what ops must where layers are compiled, in bytes: its
/// loss and update are eager all the same (torchtitan_stack.cc counts them).
inline constexpr cost_models::ExtraTraffic kTorchtitanCompiledTraffic = {
    .update = 16, .loss = 20, .loss_gradient = 26, .activation = 4};

}  // namespace orrery::tools

#endif  // ORRERY_TOOLS_VALIDATION_STACKS_TORCHTITAN_TRAFFIC_H_
