#include "ir/op_info.h"
#include "ir/op_kind.h"
#include "ir/ops/checks.h"
#include "ir/ops/kernels.h"
#include "ir/ops/normalization.h"
#include "support/status.h"

// Group normalization of x [batch, channels, ..]: each group of channels of each sample by its own
// mean and variance (Wu & He 2018). With as many groups as channels it is instance normalization.

namespace orrery::ir {
namespace group_norm_cc {
namespace {

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
  AddNormResults(x, {x.dims[0], op.attributes.Int("groups", 1)}, results);
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

// The positions of run g.
auto PositionsOf(const Groups& groups, int64_t g) {
  return [groups, g](int64_t i, int64_t scales) { return groups.ScaleOf(g, i, scales); };
}

absl::Status EvaluateGroupNorm(Evaluation& e) {
  const Groups groups = GroupsOf(e);
  for (int64_t g = 0; g < groups.count; ++g) {
    NormalizeRun(e, {.index = g, .size = groups.size()}, PositionsOf(groups, g));
  }
  return absl::OkStatus();
}

absl::Status GroupNormGradient(GradientContext& c) {
  return NormGradient(c, OpKind::kGroupNormGrad, {{"groups", c.attributes().Int("groups", 1)}});
}

absl::Status InferGroupNormGrad(const OpTypes& op, TypeList& results) {
  ORRERY_RETURN_IF_ERROR(CheckGroups(op));
  ORRERY_RETURN_IF_ERROR(CheckScale(op, 1));
  return InferNormGrad(op, {op.operands[0]->dims[0], op.attributes.Int("groups", 1)}, results);
}

ShardingRule GroupNormGradSharding(const OpTypes& op, const TypeList&) {
  const auto image = BatchFactors(*op.operands[0]), statistics = BatchFactors(*op.operands[2]);
  return {.operands = {image, {kNoFactor}, statistics, statistics, image},
          .results = {image, {kNoFactor}, {kNoFactor}}};
}

absl::Status EvaluateGroupNormGrad(Evaluation& e) {
  const Groups groups = GroupsOf(e);
  for (int64_t g = 0; g < groups.count; ++g) {
    NormalizeRunBack(e, {.index = g, .size = groups.size()}, PositionsOf(groups, g));
  }
  return absl::OkStatus();
}

}  // namespace
}  // namespace group_norm_cc

extern const OpInfo kGroupNormOp = {
    .name = "GroupNorm",
    .summary =
        "x [batch,channels,..] normalized in `groups` of channels, times scale plus bias; "
        "mean; 1 / standard deviation",
    .operands = 3,
    .results = 3,
    .infer = group_norm_cc::InferGroupNorm,
    .flops = [](const OpTypes& op, const TypeList&) { return kNormFlops * ElementsOfFirst(op); },
    .sharding = group_norm_cc::GroupNormSharding,
    .evaluate = group_norm_cc::EvaluateGroupNorm,
    .gradient = group_norm_cc::GroupNormGradient,
};

extern const OpInfo kGroupNormGradOp = {
    .name = "GroupNormGrad",
    .summary =
        "gradients of x, scale and bias of GroupNorm from x, scale, mean, 1 / standard "
        "deviation and dy",
    .operands = 5,
    .results = 3,
    .infer = group_norm_cc::InferGroupNormGrad,
    .flops = [](const OpTypes& op,
                const TypeList&) { return kNormGradFlops * ElementsOfFirst(op); },
    .sharding = group_norm_cc::GroupNormGradSharding,
    .evaluate = group_norm_cc::EvaluateGroupNormGrad,
};

}  // namespace orrery::ir
