#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "importer/onnx/onnx_op.h"
#include "ir/op_kind.h"
#include "support/status.h"

// Losses that a graph computes itself: the likelihood of each row's label, and its sum or mean.

namespace orrery::importer {
namespace losses_cc {
namespace {

absl::StatusOr<ir::ValueId> Total(NodeContext& c, ir::ValueId value) {
  std::vector<int64_t> axes;
  for (size_t d = 0; d < c.type(value).dims.size(); ++d) axes.push_back(static_cast<int64_t>(d));
  return c.Op(ir::OpKind::kReduceSum, {value}, {{"axes", axes}});
}

// The label that counts for nothing: an attribute, or input 3 of ONNX Runtime's op.
absl::Status SetIgnored(NodeContext& c, ir::AttributeSet& attributes) {
  if (c.Attribute("ignore_index") != nullptr) {
    attributes.Set("ignore_index", c.Int("ignore_index", 0));
  }
  if (!c.has_input(3)) return absl::OkStatus();
  ORRERY_ASSIGN_OR_RETURN(const std::vector<int64_t> ignored, c.IntegerInput(3));
  if (ignored.size() == 1) attributes.Set("ignore_index", ignored[0]);
  return absl::OkStatus();
}

// The loss of log-likelihoods [batch, classes, ..] reduced as the attribute says: a mean is the sum
// over the sum of the weights of the rows that count.
absl::StatusOr<ir::ValueId> LikelihoodLoss(NodeContext& c, ir::ValueId likelihoods) {
  std::vector<ir::ValueId> operands = {likelihoods, c.input(1)};
  if (c.has_input(2)) operands.push_back(c.input(2));
  ir::AttributeSet attributes;
  ORRERY_RETURN_IF_ERROR(SetIgnored(c, attributes));
  ORRERY_ASSIGN_OR_RETURN(const std::vector<ir::ValueId> rows,
                          c.Ops(ir::OpKind::kNegativeLikelihood, operands, attributes));
  const std::string reduction = c.String("reduction", "mean");
  if (reduction == "none") return rows[0];
  ORRERY_ASSIGN_OR_RETURN(const ir::ValueId sum, Total(c, rows[0]));
  if (reduction == "sum") return sum;
  if (reduction != "mean") {
    return absl::InvalidArgumentError(
        absl::StrCat("reduction is \"", reduction, "\"; wanted none, sum or mean"));
  }
  ORRERY_ASSIGN_OR_RETURN(const ir::ValueId weight, Total(c, rows[1]));
  return c.Op(ir::OpKind::kDiv, {sum, weight});
}

absl::Status LowerNegativeLogLikelihoodLoss(NodeContext& c) {
  return c.Return(LikelihoodLoss(c, c.input(0)));
}

absl::Status LowerSoftmaxCrossEntropyLoss(NodeContext& c) {
  ORRERY_ASSIGN_OR_RETURN(const ir::ValueId likelihoods,
                          c.Op(ir::OpKind::kLogSoftmax, {c.input(0)}, {{"axis", int64_t{1}}}));
  ORRERY_ASSIGN_OR_RETURN(const ir::ValueId loss, LikelihoodLoss(c, likelihoods));
  c.SetOutput(0, loss);
  c.SetOutput(1, likelihoods);
  return absl::OkStatus();
}

}  // namespace
}  // namespace losses_cc

extern const OnnxOp kNegativeLogLikelihoodLossOnnxOp = {
    .type = "NegativeLogLikelihoodLoss",
    .inputs = 2,
    .lower = losses_cc::LowerNegativeLogLikelihoodLoss};

extern const OnnxOp kSoftmaxCrossEntropyLossOnnxOp = {
    .type = "SoftmaxCrossEntropyLoss",
    .inputs = 2,
    .lower = losses_cc::LowerSoftmaxCrossEntropyLoss};

// Of ONNX Runtime's training graphs; `ignore_index` is its last input.
extern const OnnxOp kMicrosoftSoftmaxCrossEntropyLossInternalOnnxOp = {
    .type = "SoftmaxCrossEntropyLossInternal",
    .domain = "com.microsoft",
    .inputs = 2,
    .lower = losses_cc::LowerSoftmaxCrossEntropyLoss};

}  // namespace orrery::importer
