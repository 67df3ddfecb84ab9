#include <vector>

#include "importer/onnx/onnx_op.h"
#include "ir/op_kind.h"
#include "support/status.h"

// Forward ops of ONNX Runtime: kernels that its optimizer has fused.

namespace orrery::importer {
namespace microsoft_forward_cc {
namespace {

const ir::AttributeSet kTanh = {{"approximate", "tanh"}};

absl::StatusOr<ir::ValueId> WithBias(NodeContext& c) {
  if (!c.has_input(1)) return c.input(0);
  return c.Op(ir::OpKind::kAdd, {c.input(0), c.input(1)});
}

absl::Status LowerGelu(NodeContext& c) { return c.Return(c.Op(ir::OpKind::kGelu, {c.input(0)})); }

absl::Status LowerBiasGelu(NodeContext& c) {
  ORRERY_ASSIGN_OR_RETURN(const ir::ValueId x, WithBias(c));
  return c.Return(c.Op(ir::OpKind::kGelu, {x}));
}

absl::Status LowerFastGelu(NodeContext& c) {
  ORRERY_ASSIGN_OR_RETURN(const ir::ValueId x, WithBias(c));
  return c.Return(c.Op(ir::OpKind::kGelu, {x}, kTanh));
}

// x times the sigmoid of alpha x.
absl::Status LowerQuickGelu(NodeContext& c) {
  const double alpha = c.Float("alpha", 1.702);
  ORRERY_ASSIGN_OR_RETURN(const ir::ValueId scaled,
                          c.Op(ir::OpKind::kScale, {c.input(0)}, {{"factor", alpha}}));
  ORRERY_ASSIGN_OR_RETURN(const ir::ValueId gate, c.Op(ir::OpKind::kSigmoid, {scaled}));
  return c.Return(c.Op(ir::OpKind::kMul, {c.input(0), gate}));
}

// alpha A' B'.
absl::Status LowerFusedMatMul(NodeContext& c) {
  if (c.Int("transBatchA", 0) != 0 || c.Int("transBatchB", 0) != 0) {
    return absl::UnimplementedError("transBatchA and transBatchB are not supported; wanted 0");
  }
  ir::AttributeSet flips;
  if (c.Int("transA", 0) != 0) flips.Set("transpose_x", int64_t{1});
  if (c.Int("transB", 0) != 0) flips.Set("transpose_w", int64_t{1});
  ORRERY_ASSIGN_OR_RETURN(const ir::ValueId product,
                          c.Op(ir::OpKind::kMatMul, {c.input(0), c.input(1)}, flips));
  const double alpha = c.Float("alpha", 1);
  if (alpha == 1) return c.Return(product);
  return c.Return(c.Op(ir::OpKind::kScale, {product}, {{"factor", alpha}}));
}

absl::StatusOr<ir::AttributeSet> NormAttributes(NodeContext& c, double epsilon) {
  const auto rank = c.input_type(0).dims.size();
  ORRERY_ASSIGN_OR_RETURN(const size_t axis, ir::NormalizeAxis(c.Int("axis", -1), rank));
  return ir::AttributeSet{{"axis", static_cast<int64_t>(axis)},
                          {"epsilon", c.Float("epsilon", epsilon)}};
}

// x + skip [+ bias] is normalized, and output 3 itself.
template <ir::OpKind kind>
absl::Status LowerSkipNorm(NodeContext& c) {
  constexpr int kGamma = 2;
  const bool centered = kind == ir::OpKind::kLayerNorm;
  const int beta = centered ? 3 : -1;
  const int bias = centered ? 4 : 3;
  ORRERY_ASSIGN_OR_RETURN(const ir::AttributeSet attributes, NormAttributes(c, 1e-12));
  ORRERY_ASSIGN_OR_RETURN(ir::ValueId sum, c.Op(ir::OpKind::kAdd, {c.input(0), c.input(1)}));
  if (c.has_input(bias)) {
    ORRERY_ASSIGN_OR_RETURN(sum, c.Op(ir::OpKind::kAdd, {sum, c.input(bias)}));
  }
  std::vector<ir::ValueId> operands = {sum, c.input(kGamma)};
  if (beta >= 0 && c.has_input(beta)) operands.push_back(c.input(beta));
  ORRERY_ASSIGN_OR_RETURN(const std::vector<ir::ValueId> results,
                          c.Ops(kind, operands, attributes));
  c.SetOutput(0, results[0]);
  if (centered) c.SetOutput(1, results[1]);
  c.SetOutput(2, results.back());
  c.SetOutput(3, sum);
  return absl::OkStatus();
}

absl::Status LowerRmsNorm(NodeContext& c) {
  ORRERY_ASSIGN_OR_RETURN(const ir::AttributeSet attributes, NormAttributes(c, 1e-5));
  const ir::ValueId operands[] = {c.input(0), c.input(1)};
  ORRERY_ASSIGN_OR_RETURN(const std::vector<ir::ValueId> results,
                          c.Ops(ir::OpKind::kRmsNorm, operands, attributes));
  for (int i = 0; i < 2; ++i) c.SetOutput(i, results[static_cast<size_t>(i)]);
  return absl::OkStatus();
}

}  // namespace
}  // namespace microsoft_forward_cc

extern const OnnxOp kMicrosoftBiasGeluOnnxOp = {.type = "BiasGelu",
                                                .domain = kMicrosoft,
                                                .inputs = 2,
                                                .weights = 0b10,
                                                .lower = microsoft_forward_cc::LowerBiasGelu};

extern const OnnxOp kMicrosoftFastGeluOnnxOp = {.type = "FastGelu",
                                                .domain = kMicrosoft,
                                                .weights = 0b10,
                                                .lower = microsoft_forward_cc::LowerFastGelu};

extern const OnnxOp kMicrosoftFusedMatMulOnnxOp = {.type = "FusedMatMul",
                                                   .domain = kMicrosoft,
                                                   .inputs = 2,
                                                   .weights = 0b10,
                                                   .lower = microsoft_forward_cc::LowerFusedMatMul};

extern const OnnxOp kMicrosoftGeluOnnxOp = {
    .type = "Gelu", .domain = kMicrosoft, .lower = microsoft_forward_cc::LowerGelu};

extern const OnnxOp kMicrosoftQuickGeluOnnxOp = {
    .type = "QuickGelu", .domain = kMicrosoft, .lower = microsoft_forward_cc::LowerQuickGelu};

// ONNX Runtime has it in ONNX's own domain.
extern const OnnxOp kSimplifiedLayerNormalizationOnnxOp = {
    .type = "SimplifiedLayerNormalization",
    .domain = kAnyDomain,
    .inputs = 2,
    .weights = 0b10,
    .lower = microsoft_forward_cc::LowerRmsNorm};

extern const OnnxOp kMicrosoftSkipLayerNormalizationOnnxOp = {
    .type = "SkipLayerNormalization",
    .domain = kMicrosoft,
    .inputs = 3,
    .weights = 0b11100,
    .lower = microsoft_forward_cc::LowerSkipNorm<ir::OpKind::kLayerNorm>};

extern const OnnxOp kMicrosoftSkipSimplifiedLayerNormalizationOnnxOp = {
    .type = "SkipSimplifiedLayerNormalization",
    .domain = kMicrosoft,
    .inputs = 3,
    .weights = 0b1100,
    .lower = microsoft_forward_cc::LowerSkipNorm<ir::OpKind::kRmsNorm>};

}  // namespace orrery::importer
