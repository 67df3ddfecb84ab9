#include "tools/validation/stacks/torchtitan_traffic.h"

// torchtitan with --experimental.enable_async_tensor_parallel, which asks for a compiler: products
// are cut by rank, and what they read or make of other ranks moves under them, into its place. All
// else is as of torchtitan_compile_stack.cc.

namespace orrery::tools {
extern constinit const SoftwareStack kTorchtitanAsyncStack = {
    .name = "torchtitan-async",
    .summary = "torchtitan, compiled, with asynchronous tensor parallelism.",
    .fp16 = {.loss = 12},
    .bf16 = {.loss = 12},
    .split_loss = 20,
    .pipelines_products = true,
    .slowdown = 0.4,  // as of fsdp, carried over
    .launch_us = kTorchtitanLaunchUs,
    .attention = cost_models::AttentionClass::kFlash2,
    .fp16_traffic = kTorchtitanCompiledTraffic,
    .bf16_traffic = kTorchtitanCompiledTraffic,
};

}  // namespace orrery::tools
