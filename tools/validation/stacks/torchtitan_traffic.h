#ifndef ORRERY_TOOLS_VALIDATION_STACKS_TORCHTITAN_TRAFFIC_H_
#define ORRERY_TOOLS_VALIDATION_STACKS_TORCHTITAN_TRAFFIC_H_

#include "tools/validation/software_stack.h"

namespace orrery::tools {

/// What its host takes for a kernel as counted here, in microseconds, of which PyTorch and FSDP2
/// launch three or four, and run hooks between. Chosen on steps of GPT-2 and a GPT of 1.3 billion
/// parameters with one sample, eager, whose device waits
/// (data/measured/h100_torchtitan_steps.json): 137 and 124. Compiled the smaller one, of 16
/// samples, takes 160.
inline constexpr double kTorchtitanLaunchUs = 125;

/// What torchtitan's kernels move besides what ops must where layers are compiled, in bytes: its
/// loss and update are eager all the same (torchtitan_stack.cc counts them).
inline constexpr cost_models::ExtraTraffic kTorchtitanCompiledTraffic = {
    .reduction = 2, .update = 16, .loss = 20, .loss_gradient = 26, .activation = 4};

}  // namespace orrery::tools

#endif  // ORRERY_TOOLS_VALIDATION_STACKS_TORCHTITAN_TRAFFIC_H_
