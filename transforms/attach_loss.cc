#include "absl/strings/str_cat.h"
#include "ir/builder.h"
#include "transforms/dead_code.h"
#include "transforms/pass.h"
#include "transforms/training_step.h"

namespace orrery::transforms {
namespace {

bool IsTrained(const ir::Function& function) {
  for (const ir::Output& output : function.outputs()) {
    if (output.role != ir::OutputRole::kResult) return true;
  }
  return false;
}

}  // namespace

absl::StatusOr<bool> AttachLoss(ir::Function& function) {
  if (IsTrained(function)) return false;
  const std::vector<ir::Output> outputs = function.outputs();
  for (const ir::Output& output : outputs) {
    const ir::ValueId prediction = output.value;
    const ir::TensorType type = function.type(prediction);
    if (!ir::IsFloat(type.dtype) || type.dims.empty()) continue;
    ir::Builder b(std::move(function));
    const ir::ValueId target = b.Data(b.FreeName("target"), type);
    const ir::ValueId loss = b.Loss(prediction, target, type.dims[0], b.FreeName("loss"));
    absl::StatusOr<ir::Function> with_loss = std::move(b).Finalize();
    if (!with_loss.ok()) return with_loss.status();
    function = *std::move(with_loss);
    function.SetOutputs({{.value = loss, .role = ir::OutputRole::kLoss, .of = {}}});
    RemoveDeadOps(function);
    return true;
  }
  return absl::InvalidArgumentError(absl::StrCat(
      function.name(), ": has no result of floating-point type to put a loss on; wanted one"));
}

extern const PassInfo kAttachLossPass = {
    .name = "attach-loss",
    .summary = "puts a squared-error loss on the first result of a function that has no loss",
    .options = "",
    .run = [](ir::Function& function, const PassOptions&) { return AttachLoss(function); },
    .idempotent = true,
};

}  // namespace orrery::transforms
