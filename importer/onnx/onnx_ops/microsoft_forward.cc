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

// A factor whose first dimension stands for the last but one, before those of the batch.
absl::StatusOr<ir::ValueId> WithBatchFirst(NodeContext& c, int input, absl::string_view flag) {
  const size_t rank = c.input_type(input).dims.size();
  if (c.Int(flag, 0) == 0 || rank < 3) return c.input(input);
  std::vector<int64_t> perm;
  for (size_t d = 1; d + 1 < rank; ++d) perm.push_back(static_cast<int64_t>(d));
  perm.push_back(0);
  perm.push_back(static_cast<int64_t>(rank) - 1);
  return c.Op(ir::OpKind::kTranspose, {c.input(input)}, {{"perm", perm}});
}

// alpha A' B'.
absl::Status LowerFusedMatMul(NodeContext& c) {
  ORRERY_ASSIGN_OR_RETURN(const ir::ValueId a, WithBatchFirst(c, 0, "transBatchA"));
  ORRERY_ASSIGN_OR_RETURN(const ir::ValueId b, WithBatchFirst(c, 1, "transBatchB"));
  ir::AttributeSet flips;
  if (c.Int("transA", 0) != 0) flips.Set("transpose_x", int64_t{1});
  if (c.Int("transB", 0) != 0) flips.Set("transpose_w", int64_t{1});
  ORRERY_ASSIGN_OR_RETURN(const ir::ValueId product, c.Op(ir::OpKind::kMatMul, {a, b}, flips));
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

// The inverse deviations of rows, which keep the dimension that has been normalized.
absl::Status SetDeviations(NodeContext& c, int output, ir::ValueId deviations) {
  if (!c.has_output(output)) return absl::OkStatus();
  const auto rank = static_cast<int64_t>(c.type(deviations).dims.size());
  if (rank < static_cast<int64_t>(c.input_type(0).dims.size())) {
    ORRERY_ASSIGN_OR_RETURN(deviations, c.Op(ir::OpKind::kUnsqueeze, {deviations},
                                             {{"axes", std::vector<int64_t>{rank}}}));
  }
  c.SetOutput(output, deviations);
  return absl::OkStatus();
}

// x + skip [+ bias] is normalized, and output 3 itself.
template <ir::OpKind kind>
absl::Status LowerSkipNorm(NodeContext& c) {
  constexpr int kGamma = 2;
  const bool centered = kind == ir::OpKind::kLayerNorm;
  const int beta = centered ? 3 : -1;
  const int bias = centered ? 4 : 3;
  ORRERY_ASSIGN_OR_RETURN(const ir::AttributeSet attributes, NormAttributes(c, 1e-12));
  ir::ValueId terms[] = {c.input(0), c.input(1)};
  if (c.has_input(bias)) {  // of the product that it came from
    ir::ValueId& biased = terms[c.MadeBy(terms[1], ir::OpKind::kMatMul) ? 1 : 0];
    ORRERY_ASSIGN_OR_RETURN(biased, c.Op(ir::OpKind::kAdd, {biased, c.input(bias)}));
  }
  ORRERY_ASSIGN_OR_RETURN(const ir::ValueId sum, c.Op(ir::OpKind::kAdd, terms));
  std::vector<ir::ValueId> operands = {sum, c.input(kGamma)};
  if (beta >= 0 && c.has_input(beta)) operands.push_back(c.input(beta));
  ORRERY_ASSIGN_OR_RETURN(const std::vector<ir::ValueId> results,
                          c.Ops(kind, operands, attributes));
  c.SetOutput(0, results[0]);
  if (centered) c.SetOutput(1, results[1]);
  c.SetOutput(3, sum);
  return SetDeviations(c, 2, results.back());
}

absl::Status LowerRmsNorm(NodeContext& c) {
  ORRERY_ASSIGN_OR_RETURN(const ir::AttributeSet attributes, NormAttributes(c, 1e-5));
  const ir::ValueId operands[] = {c.input(0), c.input(1)};
  ORRERY_ASSIGN_OR_RETURN(const std::vector<ir::ValueId> results,
                          c.Ops(ir::OpKind::kRmsNorm, operands, attributes));
  c.SetOutput(0, results[0]);
  return SetDeviations(c, 1, results[1]);
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
