#include "tools/validation/stacks/megatron_memory.h"

// Megatron's core of 2025 with TransformerEngine's kernels, as its own scripts run it. Dropout and
// sums are one kernel; products of weights' gradients add to fp32 sums
// (gradient_accumulation_fusion). The loss is Megatron's, of which a compiler makes three kernels
// (cross_entropy_loss_fusion, native): logits to fp32 (2 + 4), exponentials (4 + 4), divided (8),
// of which the op has the first 2, in place: 4 bytes a logit are held. Nothing overlaps that is not
// asked for: gradients are reduced in fp32 after the last backward. `collective_us` is fitted on
// SimuMax's steps that are not kept back: of 0, 40, 60, 70 and 80 us.

namespace orrery::tools {
namespace megatron_core_stack_cc {
namespace {

constexpr cost_models::ExtraTraffic Traffic(cost_models::ExtraTraffic of) {
  return {.reduction = of.reduction,
          .update = of.update,
          .loss = 20,
          .loss_gradient = 2,
          .activation = 4,
          .sorting = 4};
}

}  // namespace
}  // namespace megatron_core_stack_cc

extern constinit const SoftwareStack kMegatronCoreStack = {
    .name = "megatron-core",
    .summary = "Megatron's core of 2025 by its own scripts: no overlap that is not asked for.",
    .fp16 = {.loss = 4, .update = kMegatronMemory.fp16.update},
    .bf16 = {.gradient = kMegatronMemory.bf16.gradient, .loss = 4},
    .split_loss = 4,
    .fuses_dropout_sums = true,
    .sum_share = 0.45,
    .recomputes_whole = true,
    .reduces_after_backward = true,
    .bucket_parameters = kAllGradients,
    .collective_us = 70,
    .expert_kernels = true,
    .expert_call_us = kCublasCallUs,
    .experts_us = kExpertsUs,
    .fp16_traffic = megatron_core_stack_cc::Traffic(kMegatronFp16Traffic),
    .bf16_traffic = megatron_core_stack_cc::Traffic(kMegatronBf16Traffic),
};

}  // namespace orrery::tools
