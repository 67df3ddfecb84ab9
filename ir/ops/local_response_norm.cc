#include <cmath>

#include "ir/builder.h"
#include "ir/op_info.h"
#include "ir/op_kind.h"
#include "ir/ops/checks.h"
#include "ir/ops/kernels.h"
#include "support/status.h"

// Local response normalization across channels (Krizhevsky, Sutskever & Hinton 2012):
// y = x / s^beta with s = bias + alpha/size times the sum of x² over the `size` channels around.

namespace orrery::ir {
namespace local_response_norm_cc {
namespace {

absl::Status CheckAttributes(const OpTypes& op) {
  ORRERY_RETURN_IF_ERROR(CheckRankAtLeast(op, 0, 2, "[batch,channels,..]"));
  ORRERY_RETURN_IF_ERROR(CheckFloat(op, 0));
  const int64_t size = op.attributes.Int("size", 0);
  if (size >= 1 && size <= (int64_t{1} << 31)) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("size=", size, "; wanted the number of channels, at least 1"));
}

absl::Status InferLocalResponseNorm(const OpTypes& op, TypeList& results) {
  ORRERY_RETURN_IF_ERROR(CheckAttributes(op));
  return InferUnary(op, results);
}

absl::Status InferLocalResponseNormGrad(const OpTypes& op, TypeList& results) {
  ORRERY_RETURN_IF_ERROR(CheckAttributes(op));
  return InferSameShapes(op, results);
}

// A square and a sum for each neighbour, and a power.
double Flops(const OpTypes& op, const TypeList& results) {
  return (2.0 * static_cast<double>(op.attributes.Int("size", 1)) + 4) *
         static_cast<double>(ElementCount(results[0].dims));
}

// All but the channels may be split.
ShardingRule ResponseSharding(const OpTypes& op, const TypeList& results) {
  ShardingRule rule = ElementwiseRule(op, results);
  for (auto& factors : rule.operands) factors[1] = kNoFactor;
  rule.results[0][1] = kNoFactor;
  return rule;
}

struct Response {
  AroundDim around;
  int64_t before, after;  // channels
  double alpha_per_channel, beta, bias;

  int64_t At(int64_t outer, int64_t channel, int64_t inner) const {
    return (outer * around.size + channel) * around.inner + inner;
  }
  // Calls f(channel) for the channels around one.
  template <typename F>
  void ForEachNear(int64_t channel, int64_t back, int64_t ahead, F f) const {
    const int64_t last = std::min(channel + ahead, around.size - 1);
    for (int64_t c = std::max<int64_t>(channel - back, 0); c <= last; ++c) f(c);
  }
  double Sum(const Tensor& x, int64_t outer, int64_t channel, int64_t inner) const {
    double sum = 0;
    ForEachNear(channel, before, after, [&](int64_t c) {
      sum += x.Number(At(outer, c, inner)) * x.Number(At(outer, c, inner));
    });
    return bias + alpha_per_channel * sum;
  }
  template <typename F>
  void ForEach(F f) const {
    for (int64_t outer = 0; outer < around.outer; ++outer) {
      for (int64_t channel = 0; channel < around.size; ++channel) {
        for (int64_t inner = 0; inner < around.inner; ++inner) f(outer, channel, inner);
      }
    }
  }
};

Response ResponseOf(const Evaluation& e) {
  const int64_t size = e.attributes.Int("size", 1);
  return {.around = SplitAround(e.operand(0).dims(), 1),
          .before = (size - 1) / 2,
          .after = size / 2,
          .alpha_per_channel = e.attributes.Number("alpha", 1e-4) / static_cast<double>(size),
          .beta = e.attributes.Number("beta", 0.75),
          .bias = e.attributes.Number("bias", 1)};
}

absl::Status EvaluateLocalResponseNorm(Evaluation& e) {
  const Response r = ResponseOf(e);
  const Tensor& x = e.operand(0);
  r.ForEach([&](int64_t outer, int64_t channel, int64_t inner) {
    const int64_t at = r.At(outer, channel, inner);
    e.results[0].SetNumber(at, x.Number(at) * std::pow(r.Sum(x, outer, channel, inner), -r.beta));
  });
  return absl::OkStatus();
}

// dx = dy s^-beta - 2 alpha/size beta x (sum over those that x is near to of dy x s^(-beta-1)).
absl::Status EvaluateLocalResponseNormGrad(Evaluation& e) {
  const Response r = ResponseOf(e);
  const Tensor &x = e.operand(0), &dy = e.operand(1);
  std::vector<double> power(static_cast<size_t>(x.size())), pull = power;
  r.ForEach([&](int64_t outer, int64_t channel, int64_t inner) {
    const int64_t at = r.At(outer, channel, inner);
    const double sum = r.Sum(x, outer, channel, inner);
    power[static_cast<size_t>(at)] = std::pow(sum, -r.beta);
    pull[static_cast<size_t>(at)] = dy.Number(at) * x.Number(at) * std::pow(sum, -r.beta - 1);
  });
  r.ForEach([&](int64_t outer, int64_t channel, int64_t inner) {
    const int64_t at = r.At(outer, channel, inner);
    double pulled = 0;
    r.ForEachNear(channel, r.after, r.before,
                  [&](int64_t c) { pulled += pull[static_cast<size_t>(r.At(outer, c, inner))]; });
    e.results[0].SetNumber(at, dy.Number(at) * power[static_cast<size_t>(at)] -
                                   2 * r.alpha_per_channel * r.beta * x.Number(at) * pulled);
  });
  return absl::OkStatus();
}

absl::Status Gradient(GradientContext& c) {
  c.SetOperandGradient(
      0, c.builder().Op(OpKind::kLocalResponseNormGrad, {c.operand(0), c.result_gradient()},
                        c.GradientName(0), c.attributes()));
  return c.builder().status();
}

}  // namespace
}  // namespace local_response_norm_cc

extern const OpInfo kLocalResponseNormOp = {
    .name = "LocalResponseNorm",
    .summary =
        "x [batch,channels,..] over (bias + alpha/size · the squares of `size` channels "
        "around)^beta",
    .operands = 1,
    .infer = local_response_norm_cc::InferLocalResponseNorm,
    .flops = local_response_norm_cc::Flops,
    .sharding = local_response_norm_cc::ResponseSharding,
    .evaluate = local_response_norm_cc::EvaluateLocalResponseNorm,
    .gradient = local_response_norm_cc::Gradient,
};

extern const OpInfo kLocalResponseNormGradOp = {
    .name = "LocalResponseNormGrad",
    .summary = "gradient of LocalResponseNorm(x) from x and that of its result",
    .operands = 2,
    .infer = local_response_norm_cc::InferLocalResponseNormGrad,
    .flops = local_response_norm_cc::Flops,
    .sharding = local_response_norm_cc::ResponseSharding,
    .evaluate = local_response_norm_cc::EvaluateLocalResponseNormGrad,
};

}  // namespace orrery::ir
