#include "tools/validation/stacks/megatron_memory.h"

namespace orrery::tools {

extern constinit const SoftwareStack kMegatronStack = {
    .name = "megatron",
    .summary = "Megatron-LM of 2022 and 2023.",
    .fp16 = kMegatronMemory.fp16,
    .bf16 = kMegatronMemory.bf16,
    .split_loss = kMegatronMemory.split_loss,
    .fuses_dropout_sums = true,
    .recomputes_whole = true,
    .scatters_sends = true,
    .reduces_after_backward = true,
    .bucket_parameters = kAllGradients,
    .fp16_traffic = kMegatronFp16Traffic,
    .bf16_traffic = kMegatronBf16Traffic,
};

}  // namespace orrery::tools
