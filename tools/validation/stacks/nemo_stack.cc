#include "tools/validation/stacks/megatron_memory.h"

// NeMo and Megatron Bridge run Megatron's core with TransformerEngine's kernels: norms, biases,
// dropout and activations are fused, and
// products of weights' gradients add to fp32 sums (gradient_accumulation_fusion); gathers and sums
// over tensor-parallel ranks go on under products (tp_comm_overlap); the distributed optimizer
// gathers parameters beside forward, and reduces gradients in buckets of
// distributed_data_parallel.py. Memory as of Megatron.

namespace orrery::tools {

extern constinit const SoftwareStack kNemoStack = {
    .name = "nemo",
    .fp16 = kMegatronMemory.fp16,
    .bf16 = kMegatronMemory.bf16,
    .split_loss = kMegatronMemory.split_loss,
    .compiles = true,
    .copies_apart = true,
    .sum_share = 0.45,
    .pipelines_products = true,
    .gathers_ahead = true,
    .bucket_parameters = 40'000'000,
    .bucket_parameters_a_rank = 1'000'000,
};

}  // namespace orrery::tools
