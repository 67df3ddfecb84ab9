#include "tools/validation/software_stack.h"

// The loss is Megatron's. With fp16, ZeRO-1 flattens the gradients of its shard (2) and copies them
// to fp32 (4) for the update (runtime/zero/stage_1_and_2.py, step). With bf16, it keeps fp32
// gradients beside those of 16 bits (runtime/bf16_optimizer.py). Its pipeline keeps what a stage
// has sent until its backward (runtime/pipe/engine.py, pipe_buffers).

namespace orrery::tools {

extern constinit const SoftwareStack kDeepspeedStack = {
    .name = "deepspeed",
    .fp16 = {.loss = 8, .update = 6, .sent = 2},
    .bf16 = {.gradient = 4, .loss = 8, .sent = 2},
    .split_loss = 8,
};

}  // namespace orrery::tools
