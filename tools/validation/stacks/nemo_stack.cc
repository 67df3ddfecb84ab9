#include "tools/validation/stacks/megatron_memory.h"

// NeMo and Megatron Bridge run Megatron's core with TransformerEngine's kernels: norms, biases,
// dropout and activations are fused, and
// products of weights' gradients add to fp32 sums (gradient_accumulation_fusion); gathers and sums
// over tensor-parallel ranks go on under products (tp_comm_overlap); the distributed optimizer
// gathers parameters beside forward, and reduces gradients in buckets of
// distributed_data_parallel.py. Memory as of Megatron. Its loss is TransformerEngine's
// (cross_entropy_fusion_impl: te), which reads logits twice forward and writes their gradient over
// them (6, of which the op has 2). The update is Megatron's of bf16, and GELU is a kernel of its
// own. Rows of experts come by rank and are sorted by expert, and back (sort_chunks_by_idxs of
// token_dispatcher.py): read and written each time (4); DeepEP's and HybridEP's come sorted
// (SendTokensOnce). Products of experts are TransformerEngine's GroupedLinear.

namespace orrery::tools {

namespace nemo_stack_cc {
namespace {

constexpr cost_models::ExtraTraffic kNemoTraffic = {
    .update = kMegatronBf16Traffic.update, .loss = 4, .activation = 4, .sorting = 4};

}  // namespace
}  // namespace nemo_stack_cc

extern constinit const SoftwareStack kNemoStack = {
    .name = "nemo",
    .summary = "NeMo and Megatron Bridge: Megatron's core with all overlap.",
    .fp16 = kMegatronMemory.fp16,
    .bf16 = kMegatronMemory.bf16,
    .split_loss = kMegatronMemory.split_loss,
    .compiles = true,
    .copies_apart = true,
    .sum_share = 0.45,
    .recomputes_whole = true,
    .pipelines_products = true,
    .gathers_ahead = true,
    .bucket_parameters = 40'000'000,
    .bucket_parameters_a_rank = 1'000'000,
    .expert_kernels = true,
    .expert_call_us = kCublasCallUs,
    .experts_us = kExpertsUs,
    .fp16_traffic = nemo_stack_cc::kNemoTraffic,
    .bf16_traffic = nemo_stack_cc::kNemoTraffic,
};

}  // namespace orrery::tools
