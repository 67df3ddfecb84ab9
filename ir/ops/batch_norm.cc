#include <cmath>

#include "ir/builder.h"
#include "ir/op_info.h"
#include "ir/op_kind.h"
#include "ir/ops/checks.h"
#include "ir/ops/fused_activation.h"
#include "ir/ops/kernels.h"
#include "ir/ops/normalization.h"
#include "support/status.h"

// Batch normalization of x [batch, channels, ..]: each channel by its mean and variance, in
// training those of the batch, otherwise running ones (Ioffe & Szegedy 2015). Where the batch is
// split, each rank normalizes by the statistics of its share, as data-parallel training does.

namespace orrery::ir {
namespace batch_norm_cc {
namespace {

constexpr double kInferenceFlops = 2;  // an element: the statistics become one scale and one shift
constexpr double kTrainingFlops = 6;
constexpr double kBackwardFlops = 11;

constexpr int8_t kBatch = 0;
constexpr int8_t kChannel = 1;

bool InTraining(const AttributeSet& attributes) { return attributes.Int("training", 0) != 0; }

// Operands `from` to `to` - 1 are [channels] of floating point.
absl::Status CheckChannels(const OpTypes& op, size_t from, size_t to) {
  ORRERY_RETURN_IF_ERROR(CheckRankAtLeast(op, 0, 2, "[batch,channels,..]"));
  ORRERY_RETURN_IF_ERROR(CheckFloat(op, 0));
  for (size_t i = from; i < to; ++i) {
    ORRERY_RETURN_IF_ERROR(CheckFloat(op, i));
    ORRERY_RETURN_IF_ERROR(CheckDims(op, i, {op.operands[0]->dims[1]}, "(one a channel)"));
  }
  return absl::OkStatus();
}

absl::Status InferBatchNorm(const OpTypes& op, TypeList& results) {
  ORRERY_RETURN_IF_ERROR(CheckChannels(op, 1, 5));
  ORRERY_RETURN_IF_ERROR(CheckActivation(op.attributes));
  const TensorType& x = *op.operands[0];
  if (op.operands.size() > 5) {
    ORRERY_RETURN_IF_ERROR(CheckFloat(op, 5));
    ORRERY_RETURN_IF_ERROR(CheckDims(op, 5, x.dims, "as x"));
  }
  AddResult(results, x.dtype, x.dims);
  if (!InTraining(op.attributes)) return absl::OkStatus();
  for (int i = 0; i < 2; ++i) AddResult(results, StatisticsType(x.dtype), {x.dims[1]});
  for (size_t i = 3; i < 5; ++i) AddResult(results, op.operands[i]->dtype, {x.dims[1]});
  return absl::OkStatus();
}

ShardingRule::Factors ImageFactors(const TensorType& x) {
  ShardingRule::Factors factors(x.dims.size(), kNoFactor);
  factors[0] = kBatch;
  factors[1] = kChannel;
  return factors;
}

ShardingRule BatchNormSharding(const OpTypes& op, const TypeList& results) {
  const auto image = ImageFactors(*op.operands[0]);
  const ShardingRule::Factors channels = {kChannel};
  ShardingRule rule = {.operands = {image, channels, channels, channels, channels},
                       .results = {image}};
  if (op.operands.size() > 5) rule.operands.push_back(image);
  if (results.size() == 1) return rule;
  for (int i = 0; i < 4; ++i) rule.results.push_back(channels);
  rule.own_results = 0b11110;
  rule.exact = false;
  return rule;
}

// Calls f(position) for all elements of a channel.
template <typename F>
void ForEachOfChannel(const AroundDim& around, int64_t channel, F f) {
  for (int64_t sample = 0; sample < around.outer; ++sample) {
    const int64_t start = (sample * around.size + channel) * around.inner;
    for (int64_t i = start; i < start + around.inner; ++i) f(i);
  }
}

struct Statistics {
  double mean = 0, variance = 0;
};

Statistics OfBatch(const Tensor& x, const AroundDim& around, int64_t channel) {
  const auto n = static_cast<double>(around.outer * around.inner);
  Statistics s;
  ForEachOfChannel(around, channel, [&](int64_t i) { s.mean += x.Number(i) / n; });
  ForEachOfChannel(around, channel, [&](int64_t i) {
    s.variance += (x.Number(i) - s.mean) * (x.Number(i) - s.mean) / n;
  });
  return s;
}

absl::Status EvaluateBatchNorm(Evaluation& e) {
  const Tensor& x = e.operand(0);
  const AroundDim around = SplitAround(x.dims(), 1);
  const double epsilon = e.attributes.Number("epsilon", 1e-5);
  const double momentum = e.attributes.Number("momentum", 0.9);
  for (int64_t channel = 0; channel < around.size; ++channel) {
    const Statistics running = {e.operand(3).Number(channel), e.operand(4).Number(channel)};
    Statistics s = running;
    if (InTraining(e.attributes)) {
      s = OfBatch(x, around, channel);
      e.results[1].SetNumber(channel, s.mean);
      e.results[2].SetNumber(channel, 1 / std::sqrt(s.variance + epsilon));
      e.results[3].SetNumber(channel, momentum * running.mean + (1 - momentum) * s.mean);
      e.results[4].SetNumber(channel, momentum * running.variance + (1 - momentum) * s.variance);
    }
    const double scale = e.operand(1).Number(channel) / std::sqrt(s.variance + epsilon);
    const double bias = e.operand(2).Number(channel);
    ForEachOfChannel(around, channel, [&](int64_t i) {
      const double added = e.has_operand(5) ? e.operand(5).Number(i) : 0;
      const double y = (x.Number(i) - s.mean) * scale + bias + added;
      e.results[0].SetNumber(i, Activated(e.attributes, y));
    });
  }
  return absl::OkStatus();
}

absl::Status BatchNormGradient(GradientContext& c) {
  if (!c.result_gradient(0).valid()) {
    return absl::UnimplementedError("no gradient of the statistics, only of the normalized values");
  }
  Builder& b = c.builder();
  const ValueId dy = BeforeActivation(c, c.result_gradient(0));
  if (c.operand_count() > 5 && c.needs(5)) c.SetOperandGradient(5, dy);
  const bool training = InTraining(c.attributes());
  const ValueId operands[] = {c.operand(0), c.operand(1), training ? c.result(1) : c.operand(3),
                              training ? c.result(2) : c.operand(4), dy};
  AttributeSet attributes;
  if (training) {
    attributes.Set("training", int64_t{1});
  } else {
    attributes.Set("epsilon", c.attributes().Number("epsilon", 1e-5));
  }
  const std::string names[] = {c.GradientName(0), c.GradientName(1), c.GradientName(2)};
  const absl::string_view views[] = {names[0], names[1], names[2]};
  if (!b.status().ok()) return b.status();
  const OpId op = b.Ops(OpKind::kBatchNormGrad, operands, views, attributes);
  if (!op.valid()) return b.status();
  for (int i = 0; i < 3; ++i) c.SetOperandGradient(i, b.function().result(op, i));
  return absl::OkStatus();
}

absl::Status InferBatchNormGrad(const OpTypes& op, TypeList& results) {
  ORRERY_RETURN_IF_ERROR(CheckChannels(op, 1, 4));
  ORRERY_RETURN_IF_ERROR(CheckFloat(op, 4));
  const TensorType &x = *op.operands[0], &scale = *op.operands[1];
  ORRERY_RETURN_IF_ERROR(CheckDims(op, 4, x.dims, "as x"));
  AddResult(results, x.dtype, x.dims);
  for (int i = 0; i < 2; ++i) AddResult(results, scale.dtype, scale.dims);
  return absl::OkStatus();
}

ShardingRule BatchNormGradSharding(const OpTypes& op, const TypeList&) {
  const auto image = ImageFactors(*op.operands[0]);
  const ShardingRule::Factors channels = {kChannel};
  return {.operands = {image, channels, channels, channels, image},
          .results = {image, channels, channels},
          .own_results = 0,
          .exact = !InTraining(op.attributes)};
}

// As of layer normalization; with running statistics, which do not depend on x, only the scale.
absl::Status EvaluateBatchNormGrad(Evaluation& e) {
  const Tensor &x = e.operand(0), &dy = e.operand(4);
  const AroundDim around = SplitAround(x.dims(), 1);
  const bool training = InTraining(e.attributes);
  const double epsilon = e.attributes.Number("epsilon", 1e-5);
  const auto n = static_cast<double>(around.outer * around.inner);
  for (int64_t channel = 0; channel < around.size; ++channel) {
    const double mean = e.operand(2).Number(channel), spread = e.operand(3).Number(channel);
    const double rstd = training ? spread : 1 / std::sqrt(spread + epsilon);
    double dbias = 0, dscale = 0;
    ForEachOfChannel(around, channel, [&](int64_t i) {
      dbias += dy.Number(i);
      dscale += dy.Number(i) * (x.Number(i) - mean) * rstd;
    });
    e.results[1].SetNumber(channel, dscale);
    e.results[2].SetNumber(channel, dbias);
    const double scale = e.operand(1).Number(channel) * rstd;
    ForEachOfChannel(around, channel, [&](int64_t i) {
      const double normal = (x.Number(i) - mean) * rstd;
      const double common = training ? (dbias + normal * dscale) / n : 0;
      e.results[0].SetNumber(i, scale * (dy.Number(i) - common));
    });
  }
  return absl::OkStatus();
}

}  // namespace
}  // namespace batch_norm_cc

extern const OpInfo kBatchNormOp = {
    .name = "BatchNorm",
    .summary =
        "x [batch,channels,..] normalized a channel, times scale plus bias, by mean and "
        "variance [, plus another one, then `activation`]; training=1: by those of the batch, "
        "which are results, and new running ones",
    .operands = 6,
    .optional = 1,
    .results = OpInfo::kVariadic,
    .infer = batch_norm_cc::InferBatchNorm,
    .flops =
        [](const OpTypes& op, const TypeList&) {
          return (batch_norm_cc::InTraining(op.attributes) ? batch_norm_cc::kTrainingFlops
                                                           : batch_norm_cc::kInferenceFlops) *
                 ElementsOfFirst(op);
        },
    .sharding = batch_norm_cc::BatchNormSharding,
    .evaluate = batch_norm_cc::EvaluateBatchNorm,
    .gradient = batch_norm_cc::BatchNormGradient,
    .no_gradient = 0b11000,
};

extern const OpInfo kBatchNormGradOp = {
    .name = "BatchNormGrad",
    .summary =
        "gradients of x, scale and bias of BatchNorm from x, scale, mean, 1 / standard "
        "deviation (training=1) or variance, and dy",
    .operands = 5,
    .results = 3,
    .infer = batch_norm_cc::InferBatchNormGrad,
    .flops = [](const OpTypes& op,
                const TypeList&) { return batch_norm_cc::kBackwardFlops * ElementsOfFirst(op); },
    .sharding = batch_norm_cc::BatchNormGradSharding,
    .evaluate = batch_norm_cc::EvaluateBatchNormGrad,
};

}  // namespace orrery::ir
