#include "tools/validation/stacks/torchtitan_traffic.h"

// torchtitan with --training.compile: each layer is compiled, so that norms, rotary positions and
// gated activations are kernels of one pass; loss and update are as of eager torchtitan
// (torchtitan_stack.cc), as is memory.

namespace orrery::tools {
extern constinit const SoftwareStack kTorchtitanCompileStack = {
    .name = "torchtitan-compile",
    .summary = "torchtitan with compiled layers.",
    .fp16 = {.loss = 12},
    .bf16 = {.loss = 12},
    .split_loss = 20,
    .waits_for_tensor_parallel = true,
    .copies_gathers = true,
    .slowdown = 0.4,  // as of fsdp, carried over
    .launch_us = kTorchtitanLaunchUs,
    .attention = cost_models::AttentionClass::kFlash2,
    .fp16_traffic = kTorchtitanCompiledTraffic,
    .bf16_traffic = kTorchtitanCompiledTraffic,
};

}  // namespace orrery::tools
