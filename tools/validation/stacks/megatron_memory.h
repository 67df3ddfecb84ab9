#ifndef ORRERY_TOOLS_VALIDATION_STACKS_MEGATRON_MEMORY_H_
#define ORRERY_TOOLS_VALIDATION_STACKS_MEGATRON_MEMORY_H_

#include "tools/validation/software_stack.h"

namespace orrery::tools {

/// What Megatron, and what runs its core, holds beside a step. Logits are widened to fp32, and
/// their exponentials are a second copy (core/tensor_parallel/cross_entropy.py). With bf16,
/// gradients are summed in fp32 buffers (--accumulate-allreduce-grads-in-fp32, implied by --bf16);
/// with fp16 they are copied to fp32 for the update (Float16OptimizerWithFloat16Params).
inline constexpr SoftwareStack kMegatronMemory = {
    .name = "",
    .fp16 = {.loss = 8, .update = 4},
    .bf16 = {.gradient = 2, .loss = 8},
    .split_loss = 8,
};

}  // namespace orrery::tools

#endif  // ORRERY_TOOLS_VALIDATION_STACKS_MEGATRON_MEMORY_H_
