#include "tools/validation/stacks/megatron_memory.h"

// Megatron-DeepSpeed with DeepSpeed's pipeline and ZeRO-1. The loss is Megatron's. With fp16,
// ZeRO-1 flattens the gradients of its shard (2) and copies them to fp32 (4) for the update
// (runtime/zero/stage_1_and_2.py, step). With bf16, it keeps fp32 gradients beside those of 16 bits
// (runtime/bf16_optimizer.py). Its pipeline keeps what a stage has sent until its backward
// (runtime/pipe/engine.py, pipe_buffers).
//
// Bytes that kernels move besides what ops must: the bf16 optimizer's sum in fp32 is 12 a gradient
// of each microbatch (update_hp_grads: a copy, 2 + 4, and the sum, 12, where the op has 6); with
// fp16 autograd adds in 16 bits, which are the op's 6. Updates of bf16: norm (4), clipping (8),
// Adam and the copy (34, where the op has 30), zeroing (4); of fp16: a flat copy (4) and one in
// fp32 (6), whether they overflow (2), the norm (2), unscaling and clipping (8), Adam and the copy
// (34). The loss is Megatron's, and its fused attention FlashAttention 1. A rank computes nothing
// while its tensor-parallel group communicates: Megatron's code of before December 2021.
//
// The host waits for kernels before it launches others: BLOOM's scripts set CUDA_LAUNCH_BLOCKING=1
// (bigscience, train/tr11-176B-ml/tr11-176B-ml.slurm). What a launch takes then is fitted on the
// rows of BLOOM's sweep that are not kept back, of 80 to 160 us, in which two or three of PyTorch's
// stand for one here: a layer takes some 8 ms a microbatch, however it is split and however long it
// is. MT-NLG's step, of another machine, comes out right with it, and 10 % short without.

namespace orrery::tools {

extern constinit const SoftwareStack kDeepspeedStack = {
    .name = "deepspeed",
    .summary = "Megatron-DeepSpeed with ZeRO-1, as BLOOM ran it: the host waits for each kernel.",
    .fp16 = {.loss = 8, .update = 6, .sent = 2},
    .bf16 = {.gradient = 4, .loss = 8, .sent = 2},
    .split_loss = 8,
    .fuses_dropout_sums = true,
    .recomputes_whole = true,
    .waits_for_tensor_parallel = true,
    .waits_for_sends = true,
    .scatters_sends = true,
    .reduces_after_backward = true,
    .bucket_parameters = kAllGradients,
    .launch_us = 120,
    .waits_for_kernels = true,
    .attention = cost_models::AttentionClass::kFlash1,
    .fp16_traffic = {.update = 26,
                     .loss = kMegatronFp16Traffic.loss,
                     .loss_gradient = kMegatronFp16Traffic.loss_gradient,
                     .activation = kMegatronFp16Traffic.activation},
    .bf16_traffic = {.gradient_sum = 12,
                     .reduction = 2,
                     .update = 20,
                     .loss = kMegatronBf16Traffic.loss,
                     .loss_gradient = kMegatronBf16Traffic.loss_gradient,
                     .activation = kMegatronBf16Traffic.activation},
};

}  // namespace orrery::tools
