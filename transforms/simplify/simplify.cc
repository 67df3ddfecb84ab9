#include "transforms/simplify/simplify.h"

#include "ir/dead_code.h"
#include "support/status.h"
#include "transforms/pass/pass.h"

namespace orrery::transforms {

#define ORRERY_PASS(name, file)
#define ORRERY_SIMPLIFYING_PASS(name, file) extern const PassInfo k##name##Pass;
#include "transforms/pass/passes.def"
#undef ORRERY_PASS
#undef ORRERY_SIMPLIFYING_PASS

namespace simplify_cc {
namespace {

// In the order of passes.def.
constexpr const PassInfo* kOrder[] = {
#define ORRERY_PASS(name, file)
#define ORRERY_SIMPLIFYING_PASS(name, file) &k##name##Pass,
#include "transforms/pass/passes.def"
#undef ORRERY_PASS
#undef ORRERY_SIMPLIFYING_PASS
};

// Each round makes the function smaller, or leaves it; more rounds than a few mean a bug.
constexpr int kMaxRounds = 16;

}  // namespace
}  // namespace simplify_cc

absl::StatusOr<bool> Simplify(ir::Function& function, const SimplifyOptions& options) {
  if (!function.mesh().empty()) return false;
  const PassOptions flash = {{"flash", options.flash ? "1" : "0"}};
  bool changed = ir::RemoveDeadOps(function);
  for (int round = 0; round < simplify_cc::kMaxRounds; ++round) {
    bool again = false;
    for (const PassInfo* pass : simplify_cc::kOrder) {
      absl::StatusOr<bool> did = pass->run(function, flash);
      if (!did.ok()) return Annotate(did.status(), pass->name);
      again = again || *did;
    }
    changed = changed || again;
    if (!again) break;
  }
  return changed;
}

extern const PassInfo kSimplifyPass = {
    .name = "simplify",
    .summary = "runs all passes that fold, merge and fuse, until nothing changes",
    .options = "flash=0",
    .run = [](ir::Function& function, const PassOptions& options) -> absl::StatusOr<bool> {
      const std::string& flash = options.find("flash")->second;
      if (flash != "0" && flash != "1") {
        return absl::InvalidArgumentError("option flash is '" + flash + "'; wanted 0 or 1");
      }
      return Simplify(function, {.flash = flash == "1"});
    },
    .idempotent = true,
};

}  // namespace orrery::transforms
