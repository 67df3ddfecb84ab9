#include "tools/validation/stacks/megatron_memory.h"

// Megatron-LM as of Narayanan et al. (SC 2021), before gradients of a product's input were reduced
// while that of its weights is computed (December 2021): kernels wait for tensor-parallel ranks.
// All else as in the year after.

namespace orrery::tools {

extern constinit const SoftwareStack kMegatron2021Stack = {
    .name = "megatron-2021",
    .summary =
        "Megatron-LM as of Narayanan et al. (SC 2021): kernels wait for tensor-parallel ranks.",
    .fp16 = kMegatronMemory.fp16,
    .bf16 = kMegatronMemory.bf16,
    .split_loss = kMegatronMemory.split_loss,
    .fuses_dropout_sums = true,
    .recomputes_whole = true,
    .waits_for_tensor_parallel = true,
    .waits_for_sends = true,
    .scatters_sends = true,
    .reduces_after_backward = true,
    .bucket_parameters = kAllGradients,
    .fp16_traffic = kMegatronFp16Traffic,
    .bf16_traffic = kMegatronBf16Traffic,
};

}  // namespace orrery::tools
