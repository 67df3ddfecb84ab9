#include <algorithm>
#include <cmath>
#include <functional>
#include <vector>

#include "ir/op_info.h"
#include "ir/op_kind.h"
#include "ir/ops/pointwise.h"
#include "support/status.h"

// Softmax and its like: each line along the dimension `axis` by itself. Without `axis` the last
// one.

namespace orrery::ir {
namespace softmax_cc {
namespace {

absl::Status InferAlongAxis(const OpTypes& op, TypeList& results) {
  for (size_t i = 0; i < op.operands.size(); ++i) ORRERY_RETURN_IF_ERROR(CheckFloat(op, i));
  ORRERY_RETURN_IF_ERROR(AxisOrLast(op.attributes, op.operands[0]->dims.size()).status());
  return op.operands.size() == 1 ? InferUnary(op, results) : InferSameShapes(op, results);
}

ShardingRule AlongAxisRule(const OpTypes& op, const TypeList& results) {
  const size_t axis = AxisOrLast(op.attributes, results[0].dims.size()).value();
  ShardingRule rule = ElementwiseRule(op, results);
  for (ShardingRule::Factors& factors : rule.operands) factors[axis] = kNoFactor;
  rule.results[0][axis] = kNoFactor;
  return rule;
}

// Calls f(line of each operand, line to be filled) for each line along the axis.
using Line = std::vector<double>;
template <typename F>
absl::Status ForEachLine(Evaluation& e, F f) {
  Tensor& y = e.results[0];
  if (y.size() == 0) return absl::OkStatus();
  ORRERY_ASSIGN_OR_RETURN(const size_t axis, AxisOrLast(e.attributes, y.dims().size()));
  const AroundDim around = SplitAround(y.dims(), axis);
  std::vector<Line> operands(e.operands.size(), Line(static_cast<size_t>(around.size)));
  Line result(static_cast<size_t>(around.size));
  for (int64_t line = 0; line < around.outer * around.inner; ++line) {
    const int64_t begin = line / around.inner * around.size * around.inner + line % around.inner;
    for (int64_t i = 0; i < around.size; ++i) {
      for (size_t k = 0; k < operands.size(); ++k) {
        operands[k][static_cast<size_t>(i)] = e.operand(k).Number(begin + i * around.inner);
      }
    }
    f(operands, result);
    for (int64_t i = 0; i < around.size; ++i) {
      y.SetNumber(begin + i * around.inner, result[static_cast<size_t>(i)]);
    }
  }
  return absl::OkStatus();
}

// The greatest element, and the log of the sum of exp(x - greatest).
struct LogSum {
  double greatest = 0, log_sum = 0;
};
LogSum LogSumOf(const Line& x) {
  LogSum all;
  all.greatest = *std::max_element(x.begin(), x.end());
  double sum = 0;
  for (const double value : x) sum += std::exp(value - all.greatest);
  all.log_sum = std::log(sum);
  return all;
}

absl::Status EvaluateSoftmax(Evaluation& e) {
  return ForEachLine(e, [](const std::vector<Line>& x, Line& y) {
    const LogSum all = LogSumOf(x[0]);
    for (size_t i = 0; i < y.size(); ++i) y[i] = std::exp(x[0][i] - all.greatest - all.log_sum);
  });
}

absl::Status EvaluateLogSoftmax(Evaluation& e) {
  return ForEachLine(e, [](const std::vector<Line>& x, Line& y) {
    const LogSum all = LogSumOf(x[0]);
    for (size_t i = 0; i < y.size(); ++i) y[i] = x[0][i] - all.greatest - all.log_sum;
  });
}

absl::Status EvaluateHardmax(Evaluation& e) {
  return ForEachLine(e, [](const std::vector<Line>& x, Line& y) {
    std::fill(y.begin(), y.end(), 0.0);
    y[static_cast<size_t>(std::max_element(x[0].begin(), x[0].end()) - x[0].begin())] = 1;
  });
}

absl::Status EvaluateSoftmaxGrad(Evaluation& e) {
  const double scale = e.attributes.Number("scale", 1);
  return ForEachLine(e, [scale](const std::vector<Line>& in, Line& dx) {
    const Line &y = in[0], &dy = in[1];
    double dot = 0;
    for (size_t i = 0; i < y.size(); ++i) dot += y[i] * dy[i];
    for (size_t i = 0; i < y.size(); ++i) dx[i] = scale * y[i] * (dy[i] - dot);
  });
}

absl::Status EvaluateLogSoftmaxGrad(Evaluation& e) {
  return ForEachLine(e, [](const std::vector<Line>& in, Line& dx) {
    const Line &y = in[0], &dy = in[1];
    double sum = 0;
    for (const double value : dy) sum += value;
    for (size_t i = 0; i < y.size(); ++i) dx[i] = dy[i] - std::exp(y[i]) * sum;
  });
}

// From the result alone: x need not be kept.
absl::Status GradientBy(GradientContext& c, OpKind kind) {
  c.SetOperandGradient(0, c.builder().Op(kind, {c.result(), c.result_gradient()}, c.GradientName(0),
                                         c.attributes()));
  return c.builder().status();
}

}  // namespace
}  // namespace softmax_cc

extern const OpInfo kSoftmaxOp = {
    .name = "Softmax",
    .summary = "exp(x) over its sum along the dimension `axis`",
    .operands = 1,
    .infer = softmax_cc::InferAlongAxis,
    .flops = FlopsAnElement<kSoftmaxFlops>,
    .sharding = softmax_cc::AlongAxisRule,
    .evaluate = softmax_cc::EvaluateSoftmax,
    .gradient = [](GradientContext& c) { return softmax_cc::GradientBy(c, OpKind::kSoftmaxGrad); },
};

extern const OpInfo kSoftmaxGradOp = {
    .name = "SoftmaxGrad",
    .summary = "gradient of y = Softmax(x) from that of y: y (dy - sum(y dy)), times `scale`",
    .operands = 2,
    .infer = softmax_cc::InferAlongAxis,
    .flops = FlopsAnElement<4>,
    .sharding = softmax_cc::AlongAxisRule,
    .evaluate = softmax_cc::EvaluateSoftmaxGrad,
};

extern const OpInfo kLogSoftmaxOp = {
    .name = "LogSoftmax",
    .summary = "x minus the log of the sum of exp(x) along the dimension `axis`",
    .operands = 1,
    .infer = softmax_cc::InferAlongAxis,
    .flops = FlopsAnElement<kSoftmaxFlops>,
    .sharding = softmax_cc::AlongAxisRule,
    .evaluate = softmax_cc::EvaluateLogSoftmax,
    .gradient =
        [](GradientContext& c) { return softmax_cc::GradientBy(c, OpKind::kLogSoftmaxGrad); },
};

extern const OpInfo kLogSoftmaxGradOp = {
    .name = "LogSoftmaxGrad",
    .summary = "gradient of y = LogSoftmax(x) from that of y: dy - exp(y) sum(dy)",
    .operands = 2,
    .infer = softmax_cc::InferAlongAxis,
    .flops = FlopsAnElement<kExpFlops + 3>,
    .sharding = softmax_cc::AlongAxisRule,
    .evaluate = softmax_cc::EvaluateLogSoftmaxGrad,
};

extern const OpInfo kHardmaxOp = {
    .name = "Hardmax",
    .summary = "1 for the first of the greatest x along the dimension `axis`, 0 for all others",
    .operands = 1,
    .infer = softmax_cc::InferAlongAxis,
    .flops = FlopsAnElement<2>,
    .sharding = softmax_cc::AlongAxisRule,
    .evaluate = softmax_cc::EvaluateHardmax,
    .no_gradient = 1,
};

}  // namespace orrery::ir
