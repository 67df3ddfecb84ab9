#include <string>

#include "transforms/memory/adafactor_update.h"
#include "transforms/step_work.h"

// Optimizers that need means over whole parameters add up those of parts.

namespace orrery::transforms {

extern const StepStage kAverageStepStage = {
    .name = "average",
    .summary = "updates by Adafactor add up means and norms of what ranks have parts of",
    .applies = [](const StepWork& work) { return HasAdafactor(work.whole); },
    .run = [](StepWork& work) { return ExpandAdafactor(*work.step, work.plan.offload.optimizer); },
    .reads = [](const StepWork& work) -> std::string {
      return work.plan.offload.optimizer ? "host" : "";
    },
};

}  // namespace orrery::transforms
