#include <cmath>

#include "ir/builder.h"
#include "ir/ops/checks.h"
#include "ir/ops/kernels.h"
#include "support/status.h"

// Group normalization of x [batch, channels, ..]: each group of channels of each sample by its own
// mean and variance (Wu & He 2018). With as many groups as channels it is instance normalization.

namespace orrery::ir {
namespace {

constexpr double kForwardFlops = 8;
constexpr double kBackwardFlops = 14;

double ElementsOfFirst(const OpTypes& op) {
  return static_cast<double>(ElementCount(op.operands[0]->dims));
}

absl::Status CheckGroups(const OpTypes& op) {
  ORRERY_RETURN_IF_ERROR(CheckRankAtLeast(op, 0, 2, "[batch,channels,..]"));
  for (size_t i = 0; i < op.operands.size(); ++i) ORRERY_RETURN_IF_ERROR(CheckFloat(op, i));
  const int64_t groups = op.attributes.Int("groups", 1), channels = op.operands[0]->dims[1];
  if (groups > 0 && channels % groups == 0) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("groups=", groups, " does not divide ", channels, " channels"));
}

// Scale and bias are one a channel, or one a group.
absl::Status CheckScale(const OpTypes& op, size_t i) {
  const int64_t groups = op.attributes.Int("groups", 1);
  if (op.operands[i]->dims == Dims{groups}) return absl::OkStatus();
  return CheckDims(op, i, {op.operands[0]->dims[1]}, "(one a channel)");
}

absl::Status InferGroupNorm(const OpTypes& op, TypeList& results) {
  ORRERY_RETURN_IF_ERROR(CheckGroups(op));
  for (size_t i = 1; i < 3; ++i) ORRERY_RETURN_IF_ERROR(CheckScale(op, i));
  const TensorType& x = *op.operands[0];
  AddResult(results, x.dtype, x.dims);
  const Dims statistics = {x.dims[0], op.attributes.Int("groups", 1)};
  for (int i = 0; i < 2; ++i) AddResult(results, StatisticsType(x.dtype), statistics);
  return absl::OkStatus();
}

// Only the batch can be split.
ShardingRule::Factors BatchFactors(const TensorType& type) {
  ShardingRule::Factors factors(type.dims.size(), kNoFactor);
  factors[0] = 0;
  return factors;
}

ShardingRule GroupNormSharding(const OpTypes& op, const TypeList& results) {
  const auto image = BatchFactors(*op.operands[0]), statistics = BatchFactors(results[1]);
  return {.operands = {image, {kNoFactor}, {kNoFactor}},
          .results = {image, statistics, statistics}};
}

struct Groups {
  int64_t count, channels, inner;  // of all samples; of one group; elements of a channel
  int64_t in_sample;

  int64_t size() const { return channels * inner; }
  // Where the scale of element i of group g stands in a vector of `scales`.
  int64_t ScaleOf(int64_t g, int64_t i, int64_t scales) const {
    const int64_t channel = g % in_sample * channels + i / inner;
    return scales == in_sample * channels ? channel : g % in_sample;
  }
};

Groups GroupsOf(const Evaluation& e) {
  const AroundDim around = SplitAround(e.operand(0).dims(), 1);
  const int64_t groups = e.attributes.Int("groups", 1);
  return {.count = around.outer * groups,
          .channels = around.size / groups,
          .inner = around.inner,
          .in_sample = groups};
}

absl::Status EvaluateGroupNorm(Evaluation& e) {
  const Tensor &x = e.operand(0), &scale = e.operand(1), &bias = e.operand(2);
  const Groups groups = GroupsOf(e);
  const auto n = static_cast<double>(groups.size());
  const double epsilon = e.attributes.Number("epsilon", 1e-5);
  for (int64_t g = 0; g < groups.count; ++g) {
    const int64_t start = g * groups.size();
    double mean = 0, variance = 0;
    for (int64_t i = 0; i < groups.size(); ++i) mean += x.Number(start + i) / n;
    for (int64_t i = 0; i < groups.size(); ++i) {
      variance += (x.Number(start + i) - mean) * (x.Number(start + i) - mean) / n;
    }
    const double rstd = 1 / std::sqrt(variance + epsilon);
    e.results[1].SetNumber(g, mean);
    e.results[2].SetNumber(g, rstd);
    for (int64_t i = 0; i < groups.size(); ++i) {
      const double normal = (x.Number(start + i) - mean) * rstd;
      e.results[0].SetNumber(start + i, normal * scale.Number(groups.ScaleOf(g, i, scale.size())) +
                                            bias.Number(groups.ScaleOf(g, i, bias.size())));
    }
  }
  return absl::OkStatus();
}

absl::Status GroupNormGradient(GradientContext& c) {
  if (!c.result_gradient(0).valid() || c.result_gradient(1).valid() ||
      c.result_gradient(2).valid()) {
    return absl::UnimplementedError("no gradient of the statistics, only of the normalized values");
  }
  Builder& b = c.builder();
  const ValueId operands[] = {c.operand(0), c.operand(1), c.result(1), c.result(2),
                              c.result_gradient(0)};
  const std::string names[] = {c.GradientName(0), c.GradientName(1), c.GradientName(2)};
  const absl::string_view views[] = {names[0], names[1], names[2]};
  const OpId op =
      b.Ops(OpKind::kGroupNormGrad, operands, views, {{"groups", c.attributes().Int("groups", 1)}});
  if (!op.valid()) return b.status();
  for (int i = 0; i < 3; ++i) c.SetOperandGradient(i, b.function().result(op, i));
  return absl::OkStatus();
}

absl::Status InferGroupNormGrad(const OpTypes& op, TypeList& results) {
  ORRERY_RETURN_IF_ERROR(CheckGroups(op));
  ORRERY_RETURN_IF_ERROR(CheckScale(op, 1));
  const TensorType &x = *op.operands[0], &scale = *op.operands[1];
  const Dims statistics = {x.dims[0], op.attributes.Int("groups", 1)};
  ORRERY_RETURN_IF_ERROR(CheckDims(op, 2, statistics, "(the means)"));
  ORRERY_RETURN_IF_ERROR(CheckDims(op, 3, statistics, "(the deviations)"));
  ORRERY_RETURN_IF_ERROR(CheckDims(op, 4, x.dims, "as x"));
  AddResult(results, x.dtype, x.dims);
  for (int i = 0; i < 2; ++i) AddResult(results, scale.dtype, scale.dims);
  return absl::OkStatus();
}

ShardingRule GroupNormGradSharding(const OpTypes& op, const TypeList&) {
  const auto image = BatchFactors(*op.operands[0]), statistics = BatchFactors(*op.operands[2]);
  return {.operands = {image, {kNoFactor}, statistics, statistics, image},
          .results = {image, {kNoFactor}, {kNoFactor}}};
}

absl::Status EvaluateGroupNormGrad(Evaluation& e) {
  const Tensor &x = e.operand(0), &scale = e.operand(1), &dy = e.operand(4);
  const Groups groups = GroupsOf(e);
  const auto n = static_cast<double>(groups.size());
  auto &dscale = e.results[1].floats(), &dbias = e.results[2].floats();
  for (int64_t g = 0; g < groups.count; ++g) {
    const int64_t start = g * groups.size();
    const double mean = e.operand(2).Number(g), rstd = e.operand(3).Number(g);
    double sum = 0, product = 0;
    for (int64_t i = 0; i < groups.size(); ++i) {
      const auto at = static_cast<size_t>(groups.ScaleOf(g, i, scale.size()));
      const double gradient = dy.Number(start + i), normal = (x.Number(start + i) - mean) * rstd;
      dbias[at] += gradient;
      dscale[at] += gradient * normal;
      sum += gradient * scale.floats()[at] / n;
      product += gradient * scale.floats()[at] * normal / n;
    }
    for (int64_t i = 0; i < groups.size(); ++i) {
      const double scaled = dy.Number(start + i) * scale.Number(groups.ScaleOf(g, i, scale.size()));
      const double normal = (x.Number(start + i) - mean) * rstd;
      e.results[0].SetNumber(start + i, rstd * (scaled - sum - normal * product));
    }
  }
  return absl::OkStatus();
}

}  // namespace

extern const OpInfo kGroupNormOp = {
    .name = "GroupNorm",
    .summary =
        "x [batch,channels,..] normalized in `groups` of channels, times scale plus bias; "
        "mean; 1 / standard deviation",
    .operands = 3,
    .results = 3,
    .infer = InferGroupNorm,
    .flops = [](const OpTypes& op, const TypeList&) { return kForwardFlops * ElementsOfFirst(op); },
    .sharding = GroupNormSharding,
    .evaluate = EvaluateGroupNorm,
    .gradient = GroupNormGradient,
};

extern const OpInfo kGroupNormGradOp = {
    .name = "GroupNormGrad",
    .summary =
        "gradients of x, scale and bias of GroupNorm from x, scale, mean, 1 / standard "
        "deviation and dy",
    .operands = 5,
    .results = 3,
    .infer = InferGroupNormGrad,
    .flops = [](const OpTypes& op,
                const TypeList&) { return kBackwardFlops * ElementsOfFirst(op); },
    .sharding = GroupNormGradSharding,
    .evaluate = EvaluateGroupNormGrad,
};

}  // namespace orrery::ir
