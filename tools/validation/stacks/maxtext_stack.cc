#include "tools/validation/software_stack.h"

// MaxText: XLA compiles a step into one program. Element-wise ops are fused, and nothing is
// launched by the host while it runs, so that forward and backward are as a captured graph's.
// Parameters, gradients and moments are in fp32 (weight_dtype float32); FSDP gathers copies in
// 16 bits and reduces gradients likewise. The update is one fusion: besides what Adam has (30), the
// norm for clipping reads gradients (4) and the copy to 16 bits is written and read (6). Logits are
// 16 bits; log_softmax in fp32 is fused with what reads it, a pass for the maximum and the sum
// each (4); backward is one pass, as the op's. On GPUs attention is cuDNN's (cudnn_flash_te).

namespace orrery::tools {

extern constinit const SoftwareStack kMaxtextStack = {
    .name = "maxtext",
    .summary = "MaxText: XLA compiles the step into one program.",
    .fp16 = {.loss = 4},
    .bf16 = {.loss = 4},
    .split_loss = 4,
    .compiles = true,
    .cuda_graphs = true,
    .fp16_traffic = {.update = 10, .loss = 4, .activation = 4},
    .bf16_traffic = {.update = 10, .loss = 4, .activation = 4},
};

}  // namespace orrery::tools
