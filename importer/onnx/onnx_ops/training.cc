#include "absl/strings/str_cat.h"
#include "importer/onnx/onnx_op.h"
#include "ir/op_kind.h"
#include "support/status.h"

// The ops of training graphs that DistIR writes, in whatever domain: their meaning is that of the
// IR's ops of the same names.

namespace orrery::importer {
namespace training_cc {
namespace {

// The global batch: the attribute N, or the third input, or else the samples at hand.
absl::StatusOr<ir::AttributeSet> Batch(NodeContext& c) {
  int64_t batch = c.input_type(0).dims.empty() ? 1 : c.input_type(0).dims[0];
  if (c.has_input(2)) {
    ORRERY_ASSIGN_OR_RETURN(const std::vector<int64_t> count, c.IntegerInput(2));
    if (count.size() != 1) return absl::InvalidArgumentError("input 2 is no single number");
    batch = count[0];
  }
  return ir::AttributeSet{{"batch", c.Int("N", batch)}};
}

template <ir::OpKind kind>
absl::Status LowerLoss(NodeContext& c) {
  ORRERY_ASSIGN_OR_RETURN(const ir::AttributeSet batch, Batch(c));
  return c.Return(c.Op(kind, {c.input(0), c.input(1)}, batch));
}

absl::Status LowerReluGrad(NodeContext& c) {
  return c.Return(c.Op(ir::OpKind::kReluGrad, {c.input(0), c.input(1)}));
}

absl::Status LowerMatMulGrad(NodeContext& c) {
  const ir::ValueId operands[] = {c.input(0), c.input(1), c.input(2)};
  ORRERY_ASSIGN_OR_RETURN(const std::vector<ir::ValueId> gradients,
                          c.Ops(ir::OpKind::kMatMulGrad, operands));
  for (int i = 0; i < 2; ++i) c.SetOutput(i, gradients[static_cast<size_t>(i)]);
  return absl::OkStatus();
}

}  // namespace
}  // namespace training_cc

extern const OnnxOp kLossOnnxOp = {.type = "Loss",
                                   .domain = kAnyDomain,
                                   .inputs = 2,
                                   .lower = training_cc::LowerLoss<ir::OpKind::kLoss>};

extern const OnnxOp kLossGradOnnxOp = {.type = "LossGrad",
                                       .domain = kAnyDomain,
                                       .inputs = 2,
                                       .lower = training_cc::LowerLoss<ir::OpKind::kLossGrad>};

extern const OnnxOp kReluGradOnnxOp = {
    .type = "ReluGrad", .domain = kAnyDomain, .inputs = 2, .lower = training_cc::LowerReluGrad};

extern const OnnxOp kMatMulGradOnnxOp = {
    .type = "MatMulGrad", .domain = kAnyDomain, .inputs = 3, .lower = training_cc::LowerMatMulGrad};

}  // namespace orrery::importer
