#include <vector>

#include "absl/strings/str_cat.h"
#include "importer/onnx/onnx_op.h"
#include "ir/op_kind.h"
#include "support/status.h"

// Dropout. A node of inference is the identity: one without the input training_mode, or where that
// is false. A node whose training_mode is not known before the step runs is one of training.

namespace orrery::importer {
namespace dropout_cc {
namespace {

constexpr int kRatio = 1;
constexpr int kTrainingMode = 2;

bool InTraining(const NodeContext& c) {
  if (c.opset() < 12 || !c.has_input(kTrainingMode)) return false;
  const ir::Tensor* mode = c.KnownInput(kTrainingMode);
  return mode == nullptr || mode->size() != 1 || mode->Number(0) != 0;
}

absl::StatusOr<double> RatioOf(NodeContext& c) {
  if (!InTraining(c)) return 0;
  if (!c.has_input(kRatio)) return 0.5;
  const ir::Tensor* ratio = c.KnownInput(kRatio);
  if (ratio != nullptr && ratio->size() == 1) return ratio->Number(0);
  return absl::InvalidArgumentError("input 1 (ratio) is no number that is known beforehand");
}

absl::Status LowerDropout(NodeContext& c) {
  ORRERY_ASSIGN_OR_RETURN(const double ratio, RatioOf(c));
  if (ratio == 0 && !c.has_output(1)) {
    return c.Return(c.Op(ir::OpKind::kIdentity, {c.input(0)}));
  }
  const ir::ValueId operands[] = {c.input(0)};
  ORRERY_ASSIGN_OR_RETURN(const std::vector<ir::ValueId> results,
                          c.Ops(ir::OpKind::kDropout, operands, {{"ratio", ratio}}));
  for (int i = 0; i < 2; ++i) c.SetOutput(i, results[static_cast<size_t>(i)]);
  return absl::OkStatus();
}

}  // namespace
}  // namespace dropout_cc

// Before opset 7 the attribute `is_test` told training from inference.
extern const OnnxOp kDropoutOnnxOp = {
    .type = "Dropout", .since_opset = 7, .lower = dropout_cc::LowerDropout};

}  // namespace orrery::importer
