#include "tools/validation/software_stack.h"

// As FSDP, which it is built on.

namespace orrery::tools {

extern constinit const SoftwareStack kTorchtitanStack = {
    .name = "torchtitan",
    .fp16 = {.loss = 12},
    .bf16 = {.loss = 12},
    .split_loss = 20,
};

}  // namespace orrery::tools
