#include "tools/validation/software_stack.h"

// A stack that keeps a copy of gradients in fp32 beside parameters of 16 bits of either kind.

namespace orrery::tools {

extern constinit const SoftwareStack kPadsGradientsStack = {
    .name = "pads-gradients",
    .fp16 = {.gradient = 4},
    .bf16 = {.gradient = 4},
};

}  // namespace orrery::tools
