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

/// What its kernels move besides what ops must, in bytes. Loss (core/tensor_parallel/
/// cross_entropy.py): logits to fp32 (2 + 4), their maximum (4), subtracted (8), exponentials (8),
/// their sum (4), divided (8), of which the op has the first 2; backward the softmax times the
/// gradient (8), to 16 bits (6), of which it has 4. Update (optimizer/): the norm (4), clipping
/// (8), Adam in fp32 and the copy to 16 bits (34, where the op has 30), zeroing of gradients (2 or
/// 4); with fp16 the copy of gradients to fp32 (6) and unscaling (8). GELU with its bias is a
/// kernel of its own (4). With bf16, sums in fp32 are what is reduced over ranks.
inline constexpr cost_models::ExtraTraffic kMegatronFp16Traffic = {
    .update = 32, .loss = 36, .loss_gradient = 10, .activation = 4};
inline constexpr cost_models::ExtraTraffic kMegatronBf16Traffic = {
    .reduction = 2, .update = 20, .loss = 36, .loss_gradient = 10, .activation = 4};

/// What the host takes for a product of one expert in TransformerEngine's GroupedLinear, which
/// calls cuBLAS for each (multi_stream_cublas_gemm of common/gemm/cublaslt_gemm.cu; the kernel of
/// CUTLASS for all of them is off unless NVTE_USE_CUTLASS_GROUPED_GEMM says so): small ones take no
/// less. Between what forward (9) and gradients of inputs (11) of SimuMax's grouped products on
/// B200 say, of 0, 8, 9, 10, 11 and 12 us.
inline constexpr double kCublasCallUs = 10;

/// How long the device waits in each layer of experts while the host reads back how many rows each
/// expert has (GroupedLinear's m_splits are a list of the host's) and launches what follows. Fitted
/// on SimuMax's steps of DeepSeek-V2 and Megatron Bridge's of mixtures that are not kept back, of
/// 1,000, 1,500, 2,000 and 2,500 us.
inline constexpr double kExpertsUs = 2000;

}  // namespace orrery::tools

#endif  // ORRERY_TOOLS_VALIDATION_STACKS_MEGATRON_MEMORY_H_
