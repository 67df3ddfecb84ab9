#include <cmath>

#include "ir/op_info.h"
#include "ir/op_kind.h"
#include "ir/ops/checks.h"
#include "ir/ops/kernels.h"
#include "ir/ops/pointwise.h"
#include "support/status.h"

// A convolution along the sequence, each channel by itself: a position sees itself and the
// `width - 1` before it, zeros before the first. It stands before the scan of a Mamba-2 layer (Dao
// & Gu 2024), with its SiLU in the kernel. Channels are last, so that nothing is transposed.

namespace orrery::ir {
namespace causal_conv_cc {
namespace {

// Factors; the sequence has none, since a position looks at those before it.
constexpr int8_t kBatch = 0;
constexpr int8_t kChannels = 1;

bool HasSilu(const AttributeSet& attributes) {
  return attributes.String("activation", "") == "silu";
}

absl::Status CheckActivation(const AttributeSet& attributes) {
  const std::string name = attributes.String("activation", "");
  if (name.empty() || name == "silu") return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("activation=\"", name, "\"; wanted \"silu\" or none"));
}

// x [batch,seq,channels], w [channels,width], bias [channels], of one type.
absl::Status CheckOperands(const OpTypes& op) {
  const Dims &x = op.operands[0]->dims, &w = op.operands[1]->dims;
  ORRERY_RETURN_IF_ERROR(CheckFloat(op));
  for (size_t i = 1; i < op.operands.size(); ++i) ORRERY_RETURN_IF_ERROR(CheckTypeOfFirst(op, i));
  if (x.size() != 3 || w.size() != 2 || w[0] != x[2] || w[1] < 1) {
    return absl::InvalidArgumentError(
        absl::StrCat("got shapes ", Show(x), " and ", Show(w),
                     "; wanted [batch,seq,channels] and [channels,width]"));
  }
  ORRERY_RETURN_IF_ERROR(CheckDims(op, 2, {x[2]}, "(one a channel)"));
  return CheckActivation(op.attributes);
}

absl::Status InferConv(const OpTypes& op, TypeList& results) {
  ORRERY_RETURN_IF_ERROR(CheckOperands(op));
  AddResult(results, op.operands[0]->dtype, op.operands[0]->dims);
  return absl::OkStatus();
}

absl::Status InferConvGrad(const OpTypes& op, TypeList& results) {
  ORRERY_RETURN_IF_ERROR(CheckOperands(op));
  ORRERY_RETURN_IF_ERROR(CheckDims(op, 3, op.operands[0]->dims, "(that of x)"));
  for (size_t i = 0; i < 3; ++i) AddResult(results, op.operands[i]->dtype, op.operands[i]->dims);
  return absl::OkStatus();
}

// A multiply-add an element of the window, and what the SiLU takes.
double Flops(const OpTypes& op) {
  const double window = 2 * static_cast<double>(op.operands[1]->dims[1]);
  const double silu = HasSilu(op.attributes) ? kExpFlops + 3 : 0;
  return (window + silu) * static_cast<double>(ElementCount(op.operands[0]->dims));
}

double ConvFlops(const OpTypes& op, const TypeList&) { return Flops(op); }
// The sum before the SiLU again, and the gradients of both factors.
double ConvGradFlops(const OpTypes& op, const TypeList&) { return 3 * Flops(op); }

const ShardingRule::Factors kOfX = {kBatch, kNoFactor, kChannels};
const ShardingRule::Factors kOfW = {kChannels, kNoFactor};
const ShardingRule::Factors kOfBias = {kChannels};

ShardingRule ConvSharding(const OpTypes&, const TypeList&) {
  return {.operands = {kOfX, kOfW, kOfBias}, .results = {kOfX}};
}

ShardingRule ConvGradSharding(const OpTypes&, const TypeList&) {
  return {.operands = {kOfX, kOfW, kOfBias, kOfX}, .results = {kOfX, kOfW, kOfBias}};
}

double Sigmoid(double x) { return 1 / (1 + std::exp(-x)); }

// Walks over channels, samples and positions of one application.
struct Walk {
  explicit Walk(const Evaluation& e)
      : x(e.operand(0)),
        w(e.operand(1)),
        bias(e.operand(2)),
        batch(x.dims()[0]),
        seq(x.dims()[1]),
        channels(x.dims()[2]),
        width(w.dims()[1]) {}

  int64_t At(int64_t b, int64_t t, int64_t c) const { return (b * seq + t) * channels + c; }
  // Where window element k of position t reads; negative before the first position.
  int64_t Source(int64_t t, int64_t k) const { return t - (width - 1) + k; }

  double Sum(int64_t b, int64_t t, int64_t c) const {
    double sum = bias.Number(c);
    for (int64_t k = 0; k < width; ++k) {
      const int64_t from = Source(t, k);
      if (from >= 0) sum += w.Number(c * width + k) * x.Number(At(b, from, c));
    }
    return sum;
  }

  template <typename F>
  void ForEach(F f) const {
    for (int64_t b = 0; b < batch; ++b) {
      for (int64_t t = 0; t < seq; ++t) {
        for (int64_t c = 0; c < channels; ++c) f(b, t, c);
      }
    }
  }

  const Tensor &x, &w, &bias;
  int64_t batch, seq, channels, width;
};

absl::Status EvaluateConv(Evaluation& e) {
  const Walk walk(e);
  const bool silu = HasSilu(e.attributes);
  walk.ForEach([&](int64_t b, int64_t t, int64_t c) {
    const double sum = walk.Sum(b, t, c);
    e.results[0].SetNumber(walk.At(b, t, c), silu ? sum * Sigmoid(sum) : sum);
  });
  return absl::OkStatus();
}

absl::Status EvaluateConvGrad(Evaluation& e) {
  const Walk walk(e);
  const bool silu = HasSilu(e.attributes);
  std::vector<double>&dx = e.results[0].floats(), &dw = e.results[1].floats();
  walk.ForEach([&](int64_t b, int64_t t, int64_t c) {
    const double sum = walk.Sum(b, t, c), s = Sigmoid(sum);
    const double slope = silu ? s * (1 + sum * (1 - s)) : 1;
    const double dsum = slope * e.operand(3).Number(walk.At(b, t, c));
    for (int64_t k = 0; k < walk.width; ++k) {
      const int64_t from = walk.Source(t, k), tap = c * walk.width + k;
      if (from < 0) continue;
      dx[static_cast<size_t>(walk.At(b, from, c))] += dsum * walk.w.Number(tap);
      dw[static_cast<size_t>(tap)] += dsum * walk.x.Number(walk.At(b, from, c));
    }
    e.results[2].floats()[static_cast<size_t>(c)] += dsum;
  });
  return absl::OkStatus();
}

absl::Status ConvGradient(GradientContext& c) {
  if (!c.result_gradient().valid()) return absl::OkStatus();
  Builder& b = c.builder();
  const std::string dx = c.GradientName(0), dw = c.GradientName(1), db = c.GradientName(2);
  const absl::string_view names[] = {dx, dw, db};
  const ValueId operands[] = {c.operand(0), c.operand(1), c.operand(2), c.result_gradient()};
  const OpId op = b.Ops(OpKind::kCausalConvGrad, operands, names, c.attributes());
  if (!op.valid()) return b.status();
  for (int i = 0; i < 3; ++i) c.SetOperandGradient(i, b.function().result(op, i));
  return absl::OkStatus();
}

}  // namespace
}  // namespace causal_conv_cc

extern const OpInfo kCausalConvOp = {
    .name = "CausalConv",
    .summary =
        "x [batch,seq,channels] convolved along seq, each channel by its row of w [channels,width] "
        "and with bias [channels]: a position and those before it; activation=\"silu\" on top",
    .operands = 3,
    .infer = causal_conv_cc::InferConv,
    .flops = causal_conv_cc::ConvFlops,
    .sharding = causal_conv_cc::ConvSharding,
    .evaluate = causal_conv_cc::EvaluateConv,
    .gradient = causal_conv_cc::ConvGradient,
    .access = MemoryAccess::kAlongSequence,
};

extern const OpInfo kCausalConvGradOp = {
    .name = "CausalConvGrad",
    .summary = "gradients of CausalConv from x, w, bias and dy: of x, of w, of bias",
    .operands = 4,
    .results = 3,
    .infer = causal_conv_cc::InferConvGrad,
    .flops = causal_conv_cc::ConvGradFlops,
    .sharding = causal_conv_cc::ConvGradSharding,
    .evaluate = causal_conv_cc::EvaluateConvGrad,
    .access = MemoryAccess::kAlongSequence,
};

}  // namespace orrery::ir
