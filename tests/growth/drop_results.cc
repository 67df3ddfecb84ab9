#include <utility>
#include <vector>

#include "ir/dead_code.h"
#include "transforms/pass/pass.h"

namespace orrery::transforms {
namespace drop_results_cc {
namespace {

absl::StatusOr<bool> DropResults(ir::Function& function, const PassOptions&) {
  std::vector<ir::Output> kept;
  for (const ir::Output& output : function.outputs()) {
    if (output.role != ir::OutputRole::kResult) kept.push_back(output);
  }
  if (kept.empty() || kept.size() == function.outputs().size()) return false;
  function.SetOutputs(std::move(kept));
  RemoveDeadOps(function);
  return true;
}

}  // namespace
}  // namespace drop_results_cc

extern const PassInfo kDropResultsPass = {
    .name = "drop-results",
    .summary = "returns only the loss, gradients and state; drops what only other results needed",
    .options = "",
    .run = drop_results_cc::DropResults,
    .idempotent = true,
};

}  // namespace orrery::transforms
