#include "tools/validation/software_stack.h"

// A compiler that fuses all that there is, no product of anybody: element-wise ops one behind the
// other (Inductor, XLA) as far as a core has registers and shared memory for them, those side by
// side that read one value (XLA's multi-output fusion), those that do the same to other tensors
// (multi-tensor kernels of Apex, torch._foreach), and what is left as captured graphs. Kernels are
// the fastest, and hold nothing beside the step.

namespace orrery::tools {

extern constinit const SoftwareStack kCompilerStack = {
    .name = "compiler",
    .summary = "No product: fuses kernels behind and beside each other, and captures graphs.",
    .compiles = true,
    .bounds_fusion = true,
    .batches_kernels = true,
    .cuda_graphs = true,
};

}  // namespace orrery::tools
