#include "ir/dead_code.h"

#include "transforms/pass/pass.h"

namespace orrery::transforms {

extern const PassInfo kDeadCodePass = {
    .name = "dead-code",
    .summary = "removes ops whose results nothing uses",
    .options = "",
    .run = [](ir::Function& function, const PassOptions&) -> absl::StatusOr<bool> {
      return ir::RemoveDeadOps(function);
    },
    .idempotent = true,
};

}  // namespace orrery::transforms
