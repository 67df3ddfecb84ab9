#include "tools/validation/stacks/megatron_memory.h"

// Megatron-DeepSpeed, as vTrain ran it (Bang et al., MICRO 2024): memory as of Megatron. The host
// takes `launch_us` for a kernel as counted here, of which PyTorch may launch two or three: of 20
// to 75 us the one with the least error over vTrain's 360 steps of one node that are not kept back;
// so is `prepare_us`, of 0 to 4 ms: it broadcasts the sizes of a microbatch and reads them back
// (megatron/mpu/data.py), which waits for the device, and makes masks and positions.

namespace orrery::tools {

extern constinit const SoftwareStack kMegatronDeepspeedStack = {
    .name = "megatron-deepspeed",
    .summary = "Megatron-DeepSpeed as vTrain ran it: the host takes long to launch.",
    .fp16 = kMegatronMemory.fp16,
    .bf16 = kMegatronMemory.bf16,
    .split_loss = kMegatronMemory.split_loss,
    .fuses_dropout_sums = true,
    .recomputes_whole = true,
    .waits_for_sends = true,
    .scatters_sends = true,
    .reduces_after_backward = true,
    .bucket_parameters = kAllGradients,
    .launch_us = 50,
    .prepare_us = 2000,
    .attention = cost_models::AttentionClass::kFlash1,
    .fp16_traffic = kMegatronFp16Traffic,
    .bf16_traffic = kMegatronBf16Traffic,
};

}  // namespace orrery::tools
