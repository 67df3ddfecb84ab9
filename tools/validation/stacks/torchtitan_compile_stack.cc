#include "tools/validation/software_stack.h"

// torchtitan with --training.compile: each layer is compiled, so that norms, rotary positions and
// gated activations are kernels of one pass; loss and update are as of eager torchtitan
// (torchtitan_stack.cc), as is memory.

namespace orrery::tools {
namespace torchtitan_compile_stack_cc {
namespace {

constexpr cost_models::ExtraTraffic kTraffic = {
    .update = 16, .loss = 20, .loss_gradient = 26, .activation = 4};

}  // namespace
}  // namespace torchtitan_compile_stack_cc

extern constinit const SoftwareStack kTorchtitanCompileStack = {
    .name = "torchtitan-compile",
    .fp16 = {.loss = 12},
    .bf16 = {.loss = 12},
    .split_loss = 20,
    .waits_for_tensor_parallel = true,
    .copies_gathers = true,
    .slowdown = 0.4,  // as of fsdp, carried over
    .attention = cost_models::AttentionClass::kFlash2,
    .fp16_traffic = torchtitan_compile_stack_cc::kTraffic,
    .bf16_traffic = torchtitan_compile_stack_cc::kTraffic,
};

}  // namespace orrery::tools
