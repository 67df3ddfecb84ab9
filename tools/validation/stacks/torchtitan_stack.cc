#include "tools/validation/stacks/torchtitan_traffic.h"

// Memory as of FSDP, which it is built on. Attention is PyTorch's scaled_dot_product_attention, by
// FlashAttention 2. The loss is eager, in fp32: a copy (6), log_softmax, which reads thrice (16),
// and backward its gradient, which reads both operands twice (20), zeros (4), the copy back (6); of
// these the ops have 2 and 4. AdamW is fused (28), norm (4), clipping (8), the copy to 16 bits (6).
// Gradients are reduced in fp32 (training.mixed_precision_reduce).
//
// It is eager: of RMS norms (aten's composite rms_norm) a copy in fp32 (6), squares (8), their mean
// (4), the quotient (8), back to 16 bits (6), the weight (4), of which the op has 4; backward 76 by
// the same count, of which it has 6; rotary positions as complex numbers of fp32 (20, where the op
// has 4); silu and the product (10, of 6), backward (18, of 10).

namespace orrery::tools {

namespace torchtitan_stack_cc {
namespace {

constexpr cost_models::ExtraTraffic kTraffic = {.reduction = 2,
                                                .update = 16,
                                                .loss = 20,
                                                .loss_gradient = 26,
                                                .activation = 4,
                                                .norm = 32,
                                                .norm_gradient = 70,
                                                .rotary = 16,
                                                .gated = 4,
                                                .gated_gradient = 8};

}  // namespace
}  // namespace torchtitan_stack_cc

extern constinit const SoftwareStack kTorchtitanStack = {
    .name = "torchtitan",
    .summary = "torchtitan, eager: FSDP2, fp32 sums of gradients.",
    .fp16 = {.loss = 12},
    .bf16 = {.loss = 12},
    .split_loss = 20,
    .waits_for_tensor_parallel = true,
    .copies_gathers = true,
    .slowdown = 0.4,  // as of fsdp, carried over
    .launch_us = kTorchtitanLaunchUs,
    .attention = cost_models::AttentionClass::kFlash2,
    .fp16_traffic = torchtitan_stack_cc::kTraffic,
    .bf16_traffic = torchtitan_stack_cc::kTraffic,
};

}  // namespace orrery::tools
