#include "tools/validation/software_stack.h"

// Inductor makes one kernel of element-wise ops (torch/_inductor/scheduler.py: can_fuse, at most
// config.max_fusion_size of 64); products of matrices and attention stay calls of libraries. Holds
// nothing beside the step: what its kernels keep to themselves is no tensor. Attention is
// scaled_dot_product_attention's, FlashAttention 2.

namespace orrery::tools {

extern constinit const SoftwareStack kTorchCompileStack = {
    .name = "torch-compile",
    .summary = "PyTorch with torch.compile: Inductor's kernels of element-wise ops.",
    .compiles = true,
    .attention = cost_models::AttentionClass::kFlash2,
    .fp16_traffic = {.activation = 4},
    .bf16_traffic = {.activation = 4},
};

}  // namespace orrery::tools
