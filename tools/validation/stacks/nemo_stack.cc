#include "tools/validation/software_stack.h"

// NeMo and Megatron Bridge run Megatron's core with TransformerEngine's kernels: norms, biases,
// dropout and activations are fused, and
// products of weights' gradients add to fp32 sums (gradient_accumulation_fusion). Memory as of
// Megatron.

namespace orrery::tools {

extern constinit const SoftwareStack kNemoStack = {
    .name = "nemo",
    .fp16 = {.loss = 8, .update = 4},
    .bf16 = {.gradient = 2, .loss = 8},
    .split_loss = 8,
    .compiles = true,
    .adds_in_products = true,
};

}  // namespace orrery::tools
