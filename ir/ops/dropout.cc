#include "ir/builder.h"
#include "ir/op_info.h"
#include "ir/op_kind.h"
#include "ir/ops/chance.h"
#include "ir/ops/checks.h"
#include "ir/ops/kernels.h"
#include "support/status.h"

// Dropout: elements are zero with probability `ratio`, the others are scaled so that the mean stays
// (Srivastava et al. 2014). The backward needs the mask alone. Evaluated, the mask is a function
// of the attribute `seed` and of the position: the same on every run.

namespace orrery::ir {
namespace dropout_cc {
namespace {

absl::Status CheckRatio(const OpTypes& op) {
  const double ratio = op.attributes.Number("ratio", 0.5);
  if (ratio >= 0 && ratio <= 1) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("ratio=", ratio, "; wanted 0 to 1"));
}

absl::Status InferDropout(const OpTypes& op, TypeList& results) {
  ORRERY_RETURN_IF_ERROR(CheckRatio(op));
  ORRERY_RETURN_IF_ERROR(CheckFloat(op, 0));
  AddResult(results, op.operands[0]->dtype, op.operands[0]->dims);
  AddResult(results, DType::kBool, op.operands[0]->dims);
  return absl::OkStatus();
}

absl::Status InferDropoutGrad(const OpTypes& op, TypeList& results) {
  ORRERY_RETURN_IF_ERROR(CheckRatio(op));
  ORRERY_RETURN_IF_ERROR(CheckFloat(op, 1));
  ORRERY_RETURN_IF_ERROR(CheckDims(op, 1, op.operands[0]->dims, "as the mask"));
  AddResult(results, op.operands[1]->dtype, op.operands[1]->dims);
  return absl::OkStatus();
}

double ScaleOf(const AttributeSet& attributes) {
  const double ratio = attributes.Number("ratio", 0.5);
  return ratio < 1 ? 1 / (1 - ratio) : 0;
}

absl::Status EvaluateDropout(Evaluation& e) {
  const double ratio = e.attributes.Number("ratio", 0.5), scale = ScaleOf(e.attributes);
  const int64_t seed = e.attributes.Int("seed", 0);
  for (int64_t i = 0; i < e.operand(0).size(); ++i) {
    if (Chance(seed, i) < ratio) continue;
    e.results[0].SetNumber(i, e.operand(0).Number(i) * scale);
    e.results[1].SetNumber(i, 1);
  }
  return absl::OkStatus();
}

absl::Status EvaluateDropoutGrad(Evaluation& e) {
  const double scale = ScaleOf(e.attributes);
  return EvaluateBinary(e, [scale](double kept, double dy) { return kept * dy * scale; });
}

absl::Status DropoutGradient(GradientContext& c) {
  c.SetOperandGradient(
      0, c.builder().Op(OpKind::kDropoutGrad, {c.result(1), c.result_gradient(0)},
                        c.GradientName(0), {{"ratio", c.attributes().Number("ratio", 0.5)}}));
  return c.builder().status();
}

// A mask that depends on the position is another one in each part.
ShardingRule DropoutSharding(const OpTypes& op, const TypeList& results) {
  ShardingRule rule = ElementwiseRule(op, results);
  rule.exact = op.attributes.Number("ratio", 0.5) == 0;
  return rule;
}

}  // namespace
}  // namespace dropout_cc

extern const OpInfo kDropoutOp = {
    .name = "Dropout",
    .summary = "x with elements set to 0 with probability `ratio`, others scaled; what was kept",
    .operands = 1,
    .results = 2,
    .infer = dropout_cc::InferDropout,
    .flops = OneFlopAnElement,
    .sharding = dropout_cc::DropoutSharding,
    .evaluate = dropout_cc::EvaluateDropout,
    .gradient = dropout_cc::DropoutGradient,
    .random = true,
};

extern const OpInfo kDropoutGradOp = {
    .name = "DropoutGrad",
    .summary = "gradient of Dropout(x) from what was kept and dy",
    .operands = 2,
    .infer = dropout_cc::InferDropoutGrad,
    .flops = OneFlopAnElement,
    .sharding = ElementwiseRule,
    .evaluate = dropout_cc::EvaluateDropoutGrad,
};

}  // namespace orrery::ir
