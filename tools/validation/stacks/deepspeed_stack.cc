#include "tools/validation/stacks/deepspeed_figures.h"

namespace orrery::tools {

extern constinit const SoftwareStack kDeepspeedStack = DeepspeedFigures("deepspeed");

}  // namespace orrery::tools
