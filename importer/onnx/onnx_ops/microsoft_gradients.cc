#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "importer/onnx/onnx_op.h"
#include "importer/onnx/onnx_ops/windows.h"
#include "ir/op_kind.h"
#include "support/status.h"

// Gradient ops of ONNX Runtime's training graphs. Their first input is the gradient of the result.

namespace orrery::importer {
namespace microsoft_gradients_cc {
namespace {

// What the function `of` has saved, and the attributes of its gradient.
absl::Status UnaryGradient(NodeContext& c, ir::ValueId saved, const ir::AttributeSet& attributes) {
  return c.Return(c.Op(ir::OpKind::kUnaryGrad, {saved, c.input(0)}, attributes));
}

const ir::AttributeSet kGelu = {{"of", "Gelu"}};
const ir::AttributeSet kFastGelu = {{"of", "Gelu"}, {"approximate", "tanh"}};

absl::Status LowerGeluGrad(NodeContext& c) { return UnaryGradient(c, c.input(1), kGelu); }
absl::Status LowerFastGeluGrad(NodeContext& c) { return UnaryGradient(c, c.input(1), kFastGelu); }

absl::Status LowerSigmoidGrad(NodeContext& c) {
  return UnaryGradient(c, c.input(1), {{"of", "Sigmoid"}});
}

absl::Status LowerTanhGrad(NodeContext& c) {
  return UnaryGradient(c, c.input(1), {{"of", "Tanh"}});
}

absl::Status BiasGeluGradient(NodeContext& c, const ir::AttributeSet& attributes) {
  ORRERY_ASSIGN_OR_RETURN(const ir::ValueId x, c.Op(ir::OpKind::kAdd, {c.input(1), c.input(2)}));
  return UnaryGradient(c, x, attributes);
}

absl::Status LowerBiasGeluGrad(NodeContext& c) { return BiasGeluGradient(c, kGelu); }
absl::Status LowerBiasFastGeluGrad(NodeContext& c) { return BiasGeluGradient(c, kFastGelu); }

absl::Status LowerReluGrad(NodeContext& c) {
  return c.Return(c.Op(ir::OpKind::kReluGrad, {c.input(1), c.input(0)}));
}

// Of (log-)softmax over one dimension; up to opset 12 it was all from `axis` on.
template <ir::OpKind kind, bool one_dimension>
absl::Status LowerSoftmaxGrad(NodeContext& c) {
  const size_t rank = c.input_type(1).dims.size();
  ORRERY_ASSIGN_OR_RETURN(const size_t axis,
                          ir::NormalizeAxis(c.Int("axis", one_dimension ? -1 : 1), rank));
  if (!one_dimension && axis + 1 != rank) {
    return absl::UnimplementedError(
        absl::StrCat("axis ", axis, " of ", rank, " dimensions is not supported; wanted the last"));
  }
  return c.Return(c.Op(kind, {c.input(1), c.input(0)}, {{"axis", static_cast<int64_t>(axis)}}));
}

// dy, x, gamma, mean, 1 / deviation.
absl::Status LowerLayerNormalizationGrad(NodeContext& c) {
  const size_t rank = c.input_type(1).dims.size();
  ORRERY_ASSIGN_OR_RETURN(const size_t axis, ir::NormalizeAxis(c.Int("axis", -1), rank));
  const ir::ValueId operands[] = {c.input(1), c.input(2), c.input(3), c.input(4), c.input(0)};
  ORRERY_ASSIGN_OR_RETURN(
      const std::vector<ir::ValueId> results,
      c.Ops(ir::OpKind::kLayerNormGrad, operands, {{"axis", static_cast<int64_t>(axis)}}));
  for (int i = 0; i < 3; ++i) c.SetOutput(i, results[static_cast<size_t>(i)]);
  return absl::OkStatus();
}

// The shape of the table, the indices, dy.
absl::Status LowerGatherGrad(NodeContext& c) {
  ORRERY_ASSIGN_OR_RETURN(const std::vector<int64_t> shape, c.IntegerInput(0));
  ORRERY_ASSIGN_OR_RETURN(const size_t axis, ir::NormalizeAxis(c.Int("axis", 0), shape.size()));
  return c.Return(c.Op(ir::OpKind::kGatherGrad, {c.input(1), c.input(2)},
                       {{"axis", static_cast<int64_t>(axis)}, {"size", shape[axis]}}));
}

absl::StatusOr<ir::ValueId> BiasGradient(NodeContext& c) {
  std::vector<int64_t> axes;
  for (size_t d = 0; d < c.input_type(0).dims.size(); ++d) {
    if (d != 1) axes.push_back(static_cast<int64_t>(d));
  }
  return c.Op(ir::OpKind::kReduceSum, {c.input(0)}, {{"axes", axes}});
}

// dy, the image, the weights.
absl::Status LowerConvGrad(NodeContext& c) {
  ORRERY_ASSIGN_OR_RETURN(const ir::Dims input, SpatialInput(c, 1));
  ORRERY_ASSIGN_OR_RETURN(const ir::Dims weight, SpatialInput(c, 2));
  const std::vector<int64_t> kernel(weight.begin(), weight.end());
  const std::vector<int64_t> spatial(input.begin(), input.end());
  ORRERY_ASSIGN_OR_RETURN(ir::AttributeSet window, WindowAttributes(c, kernel, input));
  window.Set("group", c.Int("group", 1));
  if (c.has_output(0)) {
    ir::AttributeSet attributes = window;
    attributes.Set("spatial", spatial);
    ORRERY_ASSIGN_OR_RETURN(const ir::ValueId image,
                            c.Op(ir::OpKind::kConvDataGrad, {c.input(0), c.input(2)}, attributes));
    c.SetOutput(0, image);
  }
  if (c.has_output(1)) {
    window.Set("kernel", kernel);
    ORRERY_ASSIGN_OR_RETURN(const ir::ValueId weights,
                            c.Op(ir::OpKind::kConvWeightGrad, {c.input(1), c.input(0)}, window));
    c.SetOutput(1, weights);
  }
  if (!c.has_output(2)) return absl::OkStatus();
  ORRERY_ASSIGN_OR_RETURN(const ir::ValueId bias, BiasGradient(c));
  c.SetOutput(2, bias);
  return absl::OkStatus();
}

absl::Status LowerDropoutGrad(NodeContext& c) {
  const ir::Tensor* ratio = c.has_input(2) ? c.KnownInput(2) : nullptr;
  const bool known = ratio != nullptr && ratio->size() == 1;
  return c.Return(c.Op(ir::OpKind::kDropoutGrad, {c.input(1), c.input(0)},
                       {{"ratio", known ? ratio->Number(0) : 0.5}}));
}

// dy of a mean over rows, the log-likelihoods [rows, classes], the labels.
absl::Status LowerCrossEntropyGrad(NodeContext& c) {
  const ir::Dims dims = c.input_type(1).dims;
  const bool ignores = c.Attribute("ignore_index") != nullptr || c.has_input(4);
  if (dims.size() != 2 || c.has_input(3) || ignores || c.String("reduction", "mean") == "none") {
    return absl::UnimplementedError(
        "only a mean or a sum over rows [rows, classes] without weights and ignore_index is "
        "supported");
  }
  const int64_t rows = c.String("reduction", "mean") == "mean" ? dims[0] : 1;
  ORRERY_ASSIGN_OR_RETURN(
      const ir::ValueId gradient,
      c.Op(ir::OpKind::kCrossEntropyGrad, {c.input(1), c.input(2)}, {{"batch", rows}}));
  return c.Return(c.Op(ir::OpKind::kMul, {gradient, c.input(0)}));
}

}  // namespace
}  // namespace microsoft_gradients_cc

extern const OnnxOp kMicrosoftBiasFastGeluGrad_dXOnnxOp = {
    .type = "BiasFastGeluGrad_dX",
    .domain = kMicrosoft,
    .inputs = 3,
    .lower = microsoft_gradients_cc::LowerBiasFastGeluGrad};

extern const OnnxOp kMicrosoftBiasGeluGrad_dXOnnxOp = {
    .type = "BiasGeluGrad_dX",
    .domain = kMicrosoft,
    .inputs = 3,
    .lower = microsoft_gradients_cc::LowerBiasGeluGrad};

extern const OnnxOp kMicrosoftConvGradOnnxOp = {.type = "ConvGrad",
                                                .domain = kMicrosoft,
                                                .inputs = 3,
                                                .lower = microsoft_gradients_cc::LowerConvGrad};

extern const OnnxOp kMicrosoftDropoutGradOnnxOp = {
    .type = "DropoutGrad",
    .domain = kMicrosoft,
    .inputs = 2,
    .lower = microsoft_gradients_cc::LowerDropoutGrad};

extern const OnnxOp kMicrosoftFastGeluGradOnnxOp = {
    .type = "FastGeluGrad",
    .domain = kMicrosoft,
    .inputs = 2,
    .lower = microsoft_gradients_cc::LowerFastGeluGrad};

extern const OnnxOp kMicrosoftGatherGradOnnxOp = {.type = "GatherGrad",
                                                  .domain = kMicrosoft,
                                                  .inputs = 3,
                                                  .lower = microsoft_gradients_cc::LowerGatherGrad};

extern const OnnxOp kMicrosoftGeluGradOnnxOp = {.type = "GeluGrad",
                                                .domain = kMicrosoft,
                                                .inputs = 2,
                                                .lower = microsoft_gradients_cc::LowerGeluGrad};

extern const OnnxOp kMicrosoftLayerNormalizationGradOnnxOp = {
    .type = "LayerNormalizationGrad",
    .domain = kMicrosoft,
    .inputs = 5,
    .lower = microsoft_gradients_cc::LowerLayerNormalizationGrad};

extern const OnnxOp kMicrosoftLogSoftmaxGradOnnxOp = {
    .type = "LogSoftmaxGrad",
    .domain = kMicrosoft,
    .inputs = 2,
    .lower = microsoft_gradients_cc::LowerSoftmaxGrad<ir::OpKind::kLogSoftmaxGrad, false>};

extern const OnnxOp kMicrosoftLogSoftmaxGrad_13OnnxOp = {
    .type = "LogSoftmaxGrad_13",
    .domain = kMicrosoft,
    .inputs = 2,
    .lower = microsoft_gradients_cc::LowerSoftmaxGrad<ir::OpKind::kLogSoftmaxGrad, true>};

extern const OnnxOp kMicrosoftReluGradOnnxOp = {.type = "ReluGrad",
                                                .domain = kMicrosoft,
                                                .inputs = 2,
                                                .lower = microsoft_gradients_cc::LowerReluGrad};

extern const OnnxOp kMicrosoftSigmoidGradOnnxOp = {
    .type = "SigmoidGrad",
    .domain = kMicrosoft,
    .inputs = 2,
    .lower = microsoft_gradients_cc::LowerSigmoidGrad};

extern const OnnxOp kMicrosoftSoftmaxCrossEntropyLossGradOnnxOp = {
    .type = "SoftmaxCrossEntropyLossGrad",
    .domain = kAnyDomain,
    .inputs = 3,
    .lower = microsoft_gradients_cc::LowerCrossEntropyGrad};

extern const OnnxOp kMicrosoftSoftmaxCrossEntropyLossInternalGradOnnxOp = {
    .type = "SoftmaxCrossEntropyLossInternalGrad",
    .domain = kMicrosoft,
    .inputs = 3,
    .lower = microsoft_gradients_cc::LowerCrossEntropyGrad};

extern const OnnxOp kMicrosoftSoftmaxGradOnnxOp = {
    .type = "SoftmaxGrad",
    .domain = kMicrosoft,
    .inputs = 2,
    .lower = microsoft_gradients_cc::LowerSoftmaxGrad<ir::OpKind::kSoftmaxGrad, false>};

extern const OnnxOp kMicrosoftSoftmaxGrad_13OnnxOp = {
    .type = "SoftmaxGrad_13",
    .domain = kMicrosoft,
    .inputs = 2,
    .lower = microsoft_gradients_cc::LowerSoftmaxGrad<ir::OpKind::kSoftmaxGrad, true>};

extern const OnnxOp kMicrosoftTanhGradOnnxOp = {.type = "TanhGrad",
                                                .domain = kMicrosoft,
                                                .inputs = 2,
                                                .lower = microsoft_gradients_cc::LowerTanhGrad};

}  // namespace orrery::importer
