#include "tools/validation/software_stack.h"

// A stack that keeps a copy of gradients in fp32, whatever the type of parameters.

namespace orrery::tools {

extern constinit const SoftwareStack kPadsGradientsStack = {
    .name = "pads-gradients",
    .fp16 = {.gradient = 4},
    .bf16 = {.gradient = 4},
};

}  // namespace orrery::tools
