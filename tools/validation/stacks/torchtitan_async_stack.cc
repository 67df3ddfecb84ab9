#include "tools/validation/software_stack.h"

// torchtitan with --experimental.enable_async_tensor_parallel, which asks for a compiler: products
// are cut by rank, and what they read or make of other ranks moves under them, into its place. All
// else is as of torchtitan_compile_stack.cc.

namespace orrery::tools {
namespace torchtitan_async_stack_cc {
namespace {

constexpr cost_models::ExtraTraffic kTraffic = {
    .update = 16, .loss = 20, .loss_gradient = 26, .activation = 4};

}  // namespace
}  // namespace torchtitan_async_stack_cc

extern constinit const SoftwareStack kTorchtitanAsyncStack = {
    .name = "torchtitan-async",
    .fp16 = {.loss = 12},
    .bf16 = {.loss = 12},
    .split_loss = 20,
    .pipelines_products = true,
    .slowdown = 0.4,  // as of fsdp, carried over
    .attention = cost_models::AttentionClass::kFlash2,
    .fp16_traffic = torchtitan_async_stack_cc::kTraffic,
    .bf16_traffic = torchtitan_async_stack_cc::kTraffic,
};

}  // namespace orrery::tools
