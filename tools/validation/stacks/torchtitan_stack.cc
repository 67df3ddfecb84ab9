#include "tools/validation/software_stack.h"

// Memory as of FSDP, which it is built on. Attention is PyTorch's scaled_dot_product_attention, by
// FlashAttention 2. The loss is eager, in fp32: a copy (6), log_softmax, which reads thrice (16),
// and backward its gradient, which reads both operands twice (20), zeros (4), the copy back (6); of
// these the ops have 2 and 4. AdamW is fused (28), norm (4), clipping (8), the copy to 16 bits (6).

namespace orrery::tools {

extern constinit const SoftwareStack kTorchtitanStack = {
    .name = "torchtitan",
    .fp16 = {.loss = 12},
    .bf16 = {.loss = 12},
    .split_loss = 20,
    .attention = cost_models::AttentionClass::kFlash2,
    .fp16_traffic = {.update = 16, .loss = 20, .loss_gradient = 26, .activation = 4},
    .bf16_traffic = {.update = 16, .loss = 20, .loss_gradient = 26, .activation = 4},
};

}  // namespace orrery::tools
