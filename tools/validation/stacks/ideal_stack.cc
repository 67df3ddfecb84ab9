#include "tools/validation/software_stack.h"

// Holds nothing beside the step.

namespace orrery::tools {

extern constinit const SoftwareStack kIdealStack = {
    .name = "ideal",
};

}  // namespace orrery::tools
