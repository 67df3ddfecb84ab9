#include "tools/validation/stacks/megatron_memory.h"

// NeMo and Megatron Bridge run Megatron's core with TransformerEngine's kernels: norms, biases,
// dropout and activations are fused, and
// products of weights' gradients add to fp32 sums (gradient_accumulation_fusion). Memory as of
// Megatron.

namespace orrery::tools {

extern constinit const SoftwareStack kNemoStack = {
    .name = "nemo",
    .fp16 = kMegatronMemory.fp16,
    .bf16 = kMegatronMemory.bf16,
    .split_loss = kMegatronMemory.split_loss,
    .compiles = true,
    .adds_in_products = true,
};

}  // namespace orrery::tools
