#include "tools/validation/software_stack.h"

// Holds nothing beside the step.

namespace orrery::tools {

extern constinit const SoftwareStack kIdealStack = {
    .name = "ideal",
    .summary = "Fuses and holds nothing beside the step, overlaps what the plan says; the default.",
};

}  // namespace orrery::tools
