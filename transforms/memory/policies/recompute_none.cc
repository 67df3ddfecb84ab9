#include "transforms/memory/recompute_policy.h"

// Everything that backward reads is kept.

namespace orrery::transforms {

extern constinit const RecomputeRecord kNoneRecompute = {
    .name = "none", .values = "none", .wanted = "none", .example = "none"};

}  // namespace orrery::transforms
