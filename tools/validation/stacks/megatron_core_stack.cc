#include "tools/validation/stacks/megatron_memory.h"

// Megatron's core of 2025 with TransformerEngine's kernels, as its own scripts run it: norms,
// activations and dropout are fused, products of weights' gradients add to fp32 sums
// (gradient_accumulation_fusion), and the loss is TransformerEngine's, which reads logits twice
// forward and writes their gradient over them (6, of which the op has 2). Nothing overlaps that is
// not asked for: gradients are reduced in fp32 after the last backward.

namespace orrery::tools {
namespace megatron_core_stack_cc {
namespace {

constexpr cost_models::ExtraTraffic Traffic(cost_models::ExtraTraffic of) {
  return {.reduction = of.reduction, .update = of.update, .loss = 20, .activation = 4};
}

}  // namespace
}  // namespace megatron_core_stack_cc

extern constinit const SoftwareStack kMegatronCoreStack = {
    .name = "megatron-core",
    .fp16 = kMegatronMemory.fp16,
    .bf16 = kMegatronMemory.bf16,
    .split_loss = kMegatronMemory.split_loss,
    .fuses_dropout_sums = true,
    .sum_share = 0.45,
    .recomputes_whole = true,
    .reduces_after_backward = true,
    .bucket_parameters = kAllGradients,
    .collective_us = 70,
    .fp16_traffic = megatron_core_stack_cc::Traffic(kMegatronFp16Traffic),
    .bf16_traffic = megatron_core_stack_cc::Traffic(kMegatronBf16Traffic),
};

}  // namespace orrery::tools
