#include <algorithm>
#include <cmath>

#include "ir/op_info.h"
#include "ir/op_kind.h"
#include "ir/ops/attention.h"
#include "ir/ops/checks.h"
#include "ir/ops/kernels.h"
#include "ir/ops/pointwise.h"

// Softmax with the scale and the mask that go before it, in one kernel.

namespace orrery::ir {
namespace masked_softmax_cc {
namespace {

using attention::CheckMask;
using attention::kHiddenLogit;
using attention::MaskedLogit;

absl::Status InferMaskedSoftmax(const OpTypes& op, TypeList& results) {
  const TensorType& x = *op.operands[0];
  if (absl::Status status = CheckFloat(op); !status.ok()) return status;
  const absl::StatusOr<size_t> axis = AxisOrLast(op.attributes, x.dims.size());
  if (!axis.ok()) return axis.status();
  if (op.attributes.Int("causal", 0) != 0 && *axis + 1 != x.dims.size()) {
    return absl::InvalidArgumentError(absl::StrCat("causal=1 with axis=", *axis, " of ",
                                                   Show(x.dims), "; wanted the last dimension"));
  }
  if (op.operands.size() > 1) {
    if (absl::Status status = CheckMask(op, *op.operands[1], x.dtype, x.dims); !status.ok()) {
      return status;
    }
  }
  return InferUnary(op, results);
}

// The scale and the mask come on top of the softmax.
double MaskedSoftmaxFlops(const OpTypes& op, const TypeList& results) {
  const bool scaled = op.attributes.Number("scale", 1) != 1;
  const int each = kSoftmaxFlops + (scaled ? 1 : 0) + (op.operands.size() > 1 ? 1 : 0);
  return each * static_cast<double>(ElementCount(results[0].dims));
}

ShardingRule MaskedSoftmaxSharding(const OpTypes& op, const TypeList& results) {
  ShardingRule rule = ElementwiseRule(op, results);
  const size_t rank = results[0].dims.size();
  const size_t axis = AxisOrLast(op.attributes, rank).value_or(0);
  const bool causal = op.attributes.Int("causal", 0) != 0;
  const auto make_whole = [&](ShardingRule::Factors& factors) {
    for (int8_t& factor : factors) {
      const auto dim = static_cast<size_t>(factor);
      if (factor >= 0 && (dim == axis || (causal && dim + 1 == axis))) factor = kNoFactor;
    }
  };
  for (ShardingRule::Factors& factors : rule.operands) make_whole(factors);
  for (ShardingRule::Factors& factors : rule.results) make_whole(factors);
  return rule;
}

// The logits, instead of the results.
void MaskLogits(Evaluation& e, size_t axis) {
  Tensor& y = e.results[0];
  const double scale = e.attributes.Number("scale", 1);
  const bool causal = e.attributes.Int("causal", 0) != 0;
  const size_t rank = y.dims().size();
  const Tensor* mask = e.has_operand(1) ? &e.operand(1) : nullptr;
  const Dims strides = mask == nullptr ? Dims(rank, 0) : BroadcastStrides(mask->dims(), y.dims());
  const int64_t ahead = causal && rank > 1 ? y.dims()[axis] - y.dims()[axis - 1] : 0;
  for (Odometer at(y.dims(), {strides}); !at.done(); at.Next()) {
    const bool hidden =
        causal && at.at()[axis] > ahead + (rank > 1 ? at.at()[axis - 1] : y.dims()[axis]);
    y.SetNumber(at.index(),
                MaskedLogit(scale * e.operand(0).Number(at.index()), mask, at.offset(0), hidden));
  }
}

absl::Status EvaluateMaskedSoftmax(Evaluation& e) {
  Tensor& y = e.results[0];
  const size_t axis = AxisOrLast(e.attributes, y.dims().size()).value();
  MaskLogits(e, axis);
  const AroundDim around = SplitAround(y.dims(), axis);
  std::vector<double>& values = y.floats();
  for (int64_t row = 0; row < around.outer * around.inner; ++row) {
    const int64_t first = row / around.inner * around.size * around.inner + row % around.inner;
    const auto at = [&](int64_t i) -> double& {
      return values[static_cast<size_t>(first + i * around.inner)];
    };
    double most = kHiddenLogit, sum = 0;
    for (int64_t i = 0; i < around.size; ++i) most = std::max(most, at(i));
    for (int64_t i = 0; i < around.size; ++i) sum += at(i) = std::exp(at(i) - most);
    for (int64_t i = 0; i < around.size; ++i) at(i) /= sum;
  }
  return absl::OkStatus();
}

// The result is all that backward needs. A mask that is added and trained, such as a bias by
// position, gets the gradient of the logits.
absl::Status MaskedSoftmaxGradient(GradientContext& c) {
  Builder& b = c.builder();
  const double scale = c.attributes().Number("scale", 1);
  const bool of_mask = c.operand_count() > 1 && c.needs(1) && IsFloat(c.operand_type(1).dtype);
  AttributeSet attributes = {
      {"axis", static_cast<int64_t>(
                   AxisOrLast(c.attributes(), c.operand_type(0).dims.size()).value_or(0))}};
  if (!of_mask && scale != 1) attributes.Set("scale", scale);
  const std::array<ValueId, 2> operands = {c.result(), c.result_gradient()};
  const std::string name = of_mask && scale != 1 ? "" : c.GradientName(0);
  ValueId dlogits = b.Op(OpKind::kSoftmaxGrad, operands, name, attributes);
  if (!dlogits.valid()) return b.status();
  if (of_mask) {
    c.SetOperandGradient(1, Unbroadcast(c, dlogits, 1));
    if (scale != 1 && c.needs(0)) {
      dlogits = b.Op(OpKind::kScale, {dlogits}, c.GradientName(0), {{"factor", scale}});
    }
  }
  c.SetOperandGradient(0, dlogits);
  return b.status();
}

}  // namespace
}  // namespace masked_softmax_cc

extern const OpInfo kMaskedSoftmaxOp = {
    .name = "MaskedSoftmax",
    .summary =
        "softmax along `axis` of scale x, plus a mask of floats, or without what a mask of "
        "bools or causal=1 hides",
    .operands = 2,
    .optional = 1,
    .infer = masked_softmax_cc::InferMaskedSoftmax,
    .flops = masked_softmax_cc::MaskedSoftmaxFlops,
    .sharding = masked_softmax_cc::MaskedSoftmaxSharding,
    .evaluate = masked_softmax_cc::EvaluateMaskedSoftmax,
    .gradient = masked_softmax_cc::MaskedSoftmaxGradient,
};

}  // namespace orrery::ir
