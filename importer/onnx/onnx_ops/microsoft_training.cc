#include <algorithm>
#include <string>
#include <vector>

#include "importer/onnx/onnx_op.h"
#include "ir/op_kind.h"
#include "ir/optimizer_operands.h"
#include "support/status.h"

// What else stands in ONNX Runtime's training graphs: sums of gradients and optimizers.

namespace orrery::importer {
namespace microsoft_training_cc {
namespace {

absl::Status LowerAccumulator(NodeContext& c) {
  return c.Return(c.Op(ir::OpKind::kAdd, {c.input(0), c.input(1)}));
}

// Over which dimensions the gradient of a broadcast operand is summed, for both operands.
absl::Status LowerBroadcastGradientArgs(NodeContext& c) {
  std::vector<int64_t> shapes[2];
  for (int i = 0; i < 2; ++i) {
    ORRERY_ASSIGN_OR_RETURN(shapes[i], c.IntegerInput(i));
  }
  const size_t rank = std::max(shapes[0].size(), shapes[1].size());
  for (std::vector<int64_t>& shape : shapes) shape.insert(shape.begin(), rank - shape.size(), 1);
  for (int i = 0; i < 2; ++i) {
    std::vector<int64_t> axes;
    for (size_t d = rank; d-- > 0;) {
      if (shapes[i][d] == 1 && shapes[1 - i][d] != 1) axes.push_back(static_cast<int64_t>(d));
    }
    ORRERY_ASSIGN_OR_RETURN(const ir::ValueId constant,
                            c.Constant(ir::Tensor::OfShape(std::move(axes))));
    c.SetOutput(i, constant);
  }
  return absl::OkStatus();
}

// The rate, the weight, its gradient.
absl::Status LowerSgd(NodeContext& c) {
  const ir::ValueId operands[] = {c.input(1), c.input(2)};
  ORRERY_ASSIGN_OR_RETURN(const std::vector<ir::ValueId> results,
                          c.Ops(ir::OpKind::kSgd, operands, {{ir::kParameterCount, int64_t{1}}}));
  c.SetOutput(0, results[0]);
  c.SetOutput(1, c.input(2));
  return absl::OkStatus();
}

// The rate, the count of steps, the weight, its gradient, two moments.
absl::Status LowerAdam(NodeContext& c) {
  const ir::ValueId operands[] = {c.input(2), c.input(4), c.input(5), c.input(3)};
  ORRERY_ASSIGN_OR_RETURN(const std::vector<ir::ValueId> results,
                          c.Ops(ir::OpKind::kAdam, operands, {{ir::kParameterCount, int64_t{1}}}));
  c.SetOutput(0, c.input(1));
  c.SetOutput(1, results[1]);
  c.SetOutput(2, results[2]);
  c.SetOutput(3, results[0]);
  c.SetOutput(4, c.input(3));
  return absl::OkStatus();
}

}  // namespace
}  // namespace microsoft_training_cc

extern const OnnxOp kMicrosoftAdamOptimizerOnnxOp = {.type = "AdamOptimizer",
                                                     .domain = kMicrosoft,
                                                     .inputs = 6,
                                                     .lower = microsoft_training_cc::LowerAdam};

extern const OnnxOp kMicrosoftBroadcastGradientArgsOnnxOp = {
    .type = "BroadcastGradientArgs",
    .domain = kMicrosoft,
    .inputs = 2,
    .lower = microsoft_training_cc::LowerBroadcastGradientArgs};

extern const OnnxOp kMicrosoftInPlaceAccumulatorOnnxOp = {
    .type = "InPlaceAccumulator",
    .domain = kMicrosoft,
    .inputs = 2,
    .lower = microsoft_training_cc::LowerAccumulator};

extern const OnnxOp kMicrosoftSGDOptimizerOnnxOp = {.type = "SGDOptimizer",
                                                    .domain = kMicrosoft,
                                                    .inputs = 3,
                                                    .lower = microsoft_training_cc::LowerSgd};

}  // namespace orrery::importer
