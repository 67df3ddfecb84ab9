#include <algorithm>
#include <cmath>
#include <vector>

#include "ir/op_info.h"
#include "ir/op_kind.h"
#include "ir/ops/checks.h"
#include "ir/ops/kernels.h"
#include "support/status.h"

// The scan of a Mamba-2 layer (Dao & Gu 2024, 2405.21060: state-space duality). Each head has a
// state S [width,state], which decays and takes in what comes:
//
//   step = softplus(dt + dt_bias),  S = exp(-step exp(a_log)) S + step x (outer) B,  y = S C + d x
//
// B and C belong to groups of neighbouring heads. Kernels work by chunks of the sequence: within
// one, as attention does, by products of matrices; between them the states are passed on. So the
// sequence stays whole, and samples, and heads with their groups, may be split.

namespace orrery::ir {
namespace selective_scan_cc {
namespace {

enum : size_t { kX, kDt, kB, kC, kALog, kD, kDtBias, kDy };
constexpr size_t kOperands = kDy;

// Factors.
constexpr int8_t kBatch = 0;
constexpr int8_t kHeads = 1;

// Sizes of one scan, whole or the part of one rank.
struct Sizes {
  int64_t batch, seq, heads, width, groups, state, chunk;

  int64_t tokens() const { return batch * seq; }
  int64_t chunks() const { return batch * ((seq + chunk - 1) / chunk); }
};

Sizes SizesOf(const Dims& x, const Dims& b, const AttributeSet& attributes) {
  const int64_t chunk = attributes.Int("chunk", 128);
  return {.batch = x[0],
          .seq = x[1],
          .heads = x[2],
          .width = x[3],
          .groups = b[2],
          .state = b[3],
          .chunk = std::max<int64_t>(std::min(chunk, x[1]), 1)};
}

Sizes SizesOf(const OpTypes& op) {
  return SizesOf(op.operands[kX]->dims, op.operands[kB]->dims, op.attributes);
}

absl::Status CheckOperands(const OpTypes& op) {
  const Dims &x = op.operands[kX]->dims, &b = op.operands[kB]->dims;
  if (x.size() != 4 || b.size() != 4 || b[0] != x[0] || b[1] != x[1]) {
    return absl::InvalidArgumentError(
        absl::StrCat("x and B have shapes ", Show(x), " and ", Show(b),
                     "; wanted [batch,seq,heads,width] and [batch,seq,groups,state]"));
  }
  if (b[2] < 1 || x[2] % b[2] != 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("got ", x[2], " heads in ", b[2], " groups; wanted as many in each"));
  }
  if (op.attributes.Int("chunk", 128) < 1) {
    return absl::InvalidArgumentError(
        absl::StrCat("chunk=", op.attributes.Int("chunk", 128), "; wanted a positive number"));
  }
  for (size_t i = 0; i < op.operands.size(); ++i) ORRERY_RETURN_IF_ERROR(CheckFloat(op, i));
  for (const size_t i : {kDt, kB, kC}) ORRERY_RETURN_IF_ERROR(CheckTypeOfFirst(op, i));
  ORRERY_RETURN_IF_ERROR(CheckDims(op, kDt, {x[0], x[1], x[2]}, "(one a head)"));
  ORRERY_RETURN_IF_ERROR(CheckDims(op, kC, b, "(that of B)"));
  for (const size_t i : {kALog, kD, kDtBias}) {
    ORRERY_RETURN_IF_ERROR(CheckDims(op, i, {x[2]}, "(one a head)"));
  }
  return absl::OkStatus();
}

absl::Status InferScan(const OpTypes& op, TypeList& results) {
  ORRERY_RETURN_IF_ERROR(CheckOperands(op));
  AddResult(results, op.operands[kX]->dtype, op.operands[kX]->dims);
  return absl::OkStatus();
}

absl::Status InferScanGrad(const OpTypes& op, TypeList& results) {
  ORRERY_RETURN_IF_ERROR(CheckOperands(op));
  ORRERY_RETURN_IF_ERROR(CheckDims(op, kDy, op.operands[kX]->dims, "(that of x)"));
  for (size_t i = 0; i < kOperands; ++i) {
    AddResult(results, op.operands[i]->dtype, op.operands[i]->dims);
  }
  return absl::OkStatus();
}

// Products with the state of a head: of what comes with it, of what leaves it. And products within
// a chunk, all of its square: x by scores, of a head; C by B, of a group.
struct Products {
  double state, scores, groups;
};

Products ProductsOf(const Sizes& s) {
  const auto tokens = 2.0 * static_cast<double>(s.tokens());
  const auto heads = static_cast<double>(s.heads), groups = static_cast<double>(s.groups);
  const auto width = static_cast<double>(s.width), state = static_cast<double>(s.state);
  const auto chunk = static_cast<double>(s.chunk);
  return {.state = tokens * heads * width * state,
          .scores = tokens * heads * width * chunk,
          .groups = tokens * groups * state * chunk};
}

double ScanFlops(const OpTypes& op, const TypeList&) {
  const Products p = ProductsOf(SizesOf(op));
  return 2 * p.state + p.scores + p.groups;
}

// States and scores are made again.
double RecomputedFlops(const OpTypes& op, const TypeList&) {
  const Products p = ProductsOf(SizesOf(op));
  return p.state + p.groups;
}

// Both factors of each product.
double ScanGradFlops(const OpTypes& op, const TypeList& results) {
  return 2 * ScanFlops(op, results) + RecomputedFlops(op, results);
}

// What kernels read and write in memory, each reading its operands once: so many times x or its
// like; states of all chunks in 4 bytes and in those of x; B or C; scores of a group, in 4 bytes;
// steps and decays of a head.
struct Passes {
  double x, wide_states, states, groups, scores, steps;
};

// Of the five kernels of mamba_ssm (state-spaces/mamba, ssd_combined.py): steps and their sums;
// states of chunks; states passed on; scores; y.
constexpr Passes kForward = {
    .x = 3, .wide_states = 2, .states = 2, .groups = 4, .scores = 2, .steps = 8};
// And of backward: the first four again; gradients of y's states, of states passed on, of x, B, C,
// scores, decays, steps.
constexpr Passes kBackward = {
    .x = 11, .wide_states = 7, .states = 4, .groups = 9, .scores = 6, .steps = 20};
constexpr int kForwardKernels = 5, kBackwardKernels = 14;

int64_t BytesOfPasses(const OpTypes& op, const Passes& passes) {
  const Sizes s = SizesOf(op);
  const auto size = static_cast<double>(SizeOf(op.operands[kX]->dtype)), wide = std::max(size, 4.0);
  const auto tokens = static_cast<double>(s.tokens()), heads = static_cast<double>(s.heads);
  const auto width = static_cast<double>(s.width), state = static_cast<double>(s.state);
  const auto groups = static_cast<double>(s.groups), chunk = static_cast<double>(s.chunk);
  const double states = static_cast<double>(s.chunks()) * heads * width * state;
  const double bytes =
      size * (passes.x * tokens * heads * width + passes.states * states +
              passes.groups * tokens * groups * state) +
      wide * (passes.wide_states * states + passes.scores * tokens * groups * chunk +
              passes.steps * tokens * heads);
  return static_cast<int64_t>(std::min(bytes, 9e18));
}

int64_t ScanBytes(const OpTypes& op, const TypeList&) { return BytesOfPasses(op, kForward); }
// Gradients of B and C are summed up in 4 bytes.
int64_t ScanGradBytes(const OpTypes& op, const TypeList&) { return BytesOfPasses(op, kBackward); }

const ShardingRule::Factors kOfX = {kBatch, kNoFactor, kHeads, kNoFactor};
const ShardingRule::Factors kOfDt = {kBatch, kNoFactor, kHeads};
const ShardingRule::Factors kOfHead = {kHeads};

ShardingRule ScanSharding(const OpTypes&, const TypeList&) {
  return {.operands = {kOfX, kOfDt, kOfX, kOfX, kOfHead, kOfHead, kOfHead}, .results = {kOfX}};
}

ShardingRule ScanGradSharding(const OpTypes& op, const TypeList& results) {
  ShardingRule rule = ScanSharding(op, results);
  rule.results = {rule.operands.begin(), rule.operands.end()};
  rule.operands.push_back(kOfX);
  return rule;
}

// Evaluation: one head of one sample.
class Head {
 public:
  Head(const Evaluation& e, int64_t sample, int64_t head)
      : sizes(SizesOf(e.operand(kX).dims(), e.operand(kB).dims(), e.attributes)),
        e_(e),
        sample_(sample),
        head_(head),
        group_(head / (sizes.heads / sizes.groups)) {}

  int64_t X(int64_t t) const {
    return ((sample_ * sizes.seq + t) * sizes.heads + head_) * sizes.width;
  }
  int64_t Dt(int64_t t) const { return (sample_ * sizes.seq + t) * sizes.heads + head_; }
  int64_t B(int64_t t) const {
    return ((sample_ * sizes.seq + t) * sizes.groups + group_) * sizes.state;
  }
  double Of(size_t operand, int64_t at) const { return e_.operand(operand).Number(at); }
  // Per step the state loses exp(-step rate).
  double Rate() const { return std::exp(Of(kALog, head_)); }
  double RawStep(int64_t t) const { return Of(kDt, Dt(t)) + Of(kDtBias, head_); }
  double Step(int64_t t) const {
    const double raw = RawStep(t);
    return std::max(raw, 0.0) + std::log1p(std::exp(-std::abs(raw)));
  }
  double Decay(int64_t t) const { return std::exp(-Step(t) * Rate()); }
  // B of position s and C of position t, multiplied.
  double Score(int64_t t, int64_t s) const {
    double sum = 0;
    for (int64_t n = 0; n < sizes.state; ++n) sum += Of(kC, B(t) + n) * Of(kB, B(s) + n);
    return sum;
  }

  const Sizes sizes;

 private:
  const Evaluation& e_;
  const int64_t sample_, head_, group_;
};

template <typename F>
absl::Status ForEachHead(const Evaluation& e, F f) {
  const Dims& x = e.operand(kX).dims();
  for (int64_t b = 0; b < x[0]; ++b) {
    for (int64_t h = 0; h < x[2]; ++h) f(Head(e, b, h), h);
  }
  return absl::OkStatus();
}

// y of the positions of one chunk, of the state before it and of each other; then the state behind.
void ScanChunk(const Head& head, int64_t begin, int64_t end, std::vector<double>& state,
               Tensor& y) {
  const int64_t width = head.sizes.width, size = head.sizes.state;
  std::vector<double> decayed;  // logarithms of what is left since `begin`
  for (int64_t t = begin; t < end; ++t) {
    decayed.push_back((decayed.empty() ? 0 : decayed.back()) - head.Step(t) * head.Rate());
    for (int64_t p = 0; p < width; ++p) {
      double sum = 0;
      for (int64_t n = 0; n < size; ++n) {
        sum += std::exp(decayed.back()) * state[static_cast<size_t>(p * size + n)] *
               head.Of(kC, head.B(t) + n);
      }
      y.SetNumber(head.X(t) + p, sum);
    }
    for (int64_t s = begin; s <= t; ++s) {
      const double share = head.Score(t, s) * head.Step(s) *
                           std::exp(decayed.back() - decayed[static_cast<size_t>(s - begin)]);
      for (int64_t p = 0; p < width; ++p) {
        y.SetNumber(head.X(t) + p, y.Number(head.X(t) + p) + share * head.Of(kX, head.X(s) + p));
      }
    }
  }
  for (double& value : state) value *= std::exp(decayed.back());
  for (int64_t s = begin; s < end; ++s) {
    const double share =
        head.Step(s) * std::exp(decayed.back() - decayed[static_cast<size_t>(s - begin)]);
    for (int64_t i = 0; i < width * size; ++i) {
      state[static_cast<size_t>(i)] +=
          share * head.Of(kX, head.X(s) + i / size) * head.Of(kB, head.B(s) + i % size);
    }
  }
}

absl::Status EvaluateScan(Evaluation& e) {
  return ForEachHead(e, [&](const Head& head, int64_t h) {
    const Sizes& s = head.sizes;
    std::vector<double> state(static_cast<size_t>(s.width * s.state), 0);
    for (int64_t begin = 0; begin < s.seq; begin += s.chunk) {
      ScanChunk(head, begin, std::min(begin + s.chunk, s.seq), state, e.results[0]);
    }
    for (int64_t t = 0; t < s.seq; ++t) {
      for (int64_t p = 0; p < s.width; ++p) {
        const int64_t at = head.X(t) + p;
        e.results[0].SetNumber(at, e.results[0].Number(at) + head.Of(kD, h) * head.Of(kX, at));
      }
    }
  });
}

// The states of one head behind each position, one after the other.
std::vector<std::vector<double>> StatesOf(const Head& head) {
  const int64_t size = head.sizes.state;
  std::vector<double> state(static_cast<size_t>(head.sizes.width * size), 0);
  std::vector<std::vector<double>> states = {state};
  for (int64_t t = 0; t < head.sizes.seq; ++t) {
    const double decay = head.Decay(t), step = head.Step(t);
    for (size_t i = 0; i < state.size(); ++i) {
      const auto p = static_cast<int64_t>(i) / size, n = static_cast<int64_t>(i) % size;
      state[i] = decay * state[i] + step * head.Of(kX, head.X(t) + p) * head.Of(kB, head.B(t) + n);
    }
    states.push_back(state);
  }
  return states;
}

// Position by position from the last one, with the gradient of the state behind it.
void ScanBack(const Evaluation& e, const Head& head, int64_t h) {
  const int64_t size = head.sizes.state;
  const std::vector<std::vector<double>> states = StatesOf(head);
  const double rate = head.Rate(), d = head.Of(kD, h);
  const auto add = [&](size_t result, int64_t at, double value) {
    e.results[result].floats()[static_cast<size_t>(at)] += value;
  };
  std::vector<double> dstate(states[0].size(), 0);
  for (int64_t t = head.sizes.seq - 1; t >= 0; --t) {
    const std::vector<double>&before = states[static_cast<size_t>(t)],
          &behind = states[static_cast<size_t>(t) + 1];
    const double step = head.Step(t), decay = head.Decay(t);
    double dstep = 0, ddecay = 0;
    for (int64_t p = 0; p < head.sizes.width; ++p) {
      const double x = head.Of(kX, head.X(t) + p), dy = head.Of(kDy, head.X(t) + p);
      add(kX, head.X(t) + p, d * dy);
      add(kD, h, x * dy);
      for (int64_t n = 0; n < size; ++n) {
        const auto i = static_cast<size_t>(p * size + n);
        const double b = head.Of(kB, head.B(t) + n);
        dstate[i] += dy * head.Of(kC, head.B(t) + n);
        add(kC, head.B(t) + n, dy * behind[i]);
        add(kX, head.X(t) + p, step * dstate[i] * b);
        add(kB, head.B(t) + n, step * dstate[i] * x);
        dstep += dstate[i] * x * b;
        ddecay += dstate[i] * before[i];
        dstate[i] *= decay;
      }
    }
    const double dexponent = ddecay * decay;  // of -step rate
    const double draw = (dstep - dexponent * rate) / (1 + std::exp(-head.RawStep(t)));
    add(kALog, h, -dexponent * step * rate);
    add(kDt, head.Dt(t), draw);
    add(kDtBias, h, draw);
  }
}

absl::Status EvaluateScanGrad(Evaluation& e) {
  return ForEachHead(e, [&](const Head& head, int64_t h) { ScanBack(e, head, h); });
}

absl::Status ScanGradient(GradientContext& c) {
  if (!c.result_gradient().valid()) return absl::OkStatus();
  Builder& b = c.builder();
  std::vector<std::string> names;
  std::vector<ValueId> operands;
  for (int i = 0; i < static_cast<int>(kOperands); ++i) {
    names.push_back(c.GradientName(i));
    operands.push_back(c.operand(i));
    // One value in two places.
    if (std::ranges::count(names, names.back()) > 1) names.back().clear();
  }
  operands.push_back(c.result_gradient());
  const std::vector<absl::string_view> views(names.begin(), names.end());
  const OpId op = b.Ops(OpKind::kSelectiveScanGrad, operands, views, c.attributes());
  if (!op.valid()) return b.status();
  for (int i = 0; i < static_cast<int>(kOperands); ++i) {
    c.SetOperandGradient(i, b.function().result(op, i));
  }
  return absl::OkStatus();
}

}  // namespace
}  // namespace selective_scan_cc

extern const OpInfo kSelectiveScanOp = {
    .name = "SelectiveScan",
    .summary =
        "Mamba-2's scan of x [batch,seq,heads,width] by steps dt [batch,seq,heads], with B and C "
        "[batch,seq,groups,state], a_log, d and dt_bias [heads], in chunks of `chunk` positions",
    .operands = static_cast<int>(selective_scan_cc::kOperands),
    .infer = selective_scan_cc::InferScan,
    .flops = selective_scan_cc::ScanFlops,
    .bytes = selective_scan_cc::ScanBytes,
    .sharding = selective_scan_cc::ScanSharding,
    .evaluate = selective_scan_cc::EvaluateScan,
    .gradient = selective_scan_cc::ScanGradient,
    .kernels = selective_scan_cc::kForwardKernels,
    .access = MemoryAccess::kAlongSequence,
    .matrix_product = true,
};

extern const OpInfo kSelectiveScanGradOp = {
    .name = "SelectiveScanGrad",
    .summary = "gradients of SelectiveScan, of each of its operands, from those and dy",
    .operands = static_cast<int>(selective_scan_cc::kOperands) + 1,
    .results = static_cast<int>(selective_scan_cc::kOperands),
    .infer = selective_scan_cc::InferScanGrad,
    .flops = selective_scan_cc::ScanGradFlops,
    .recomputed_flops = selective_scan_cc::RecomputedFlops,
    .bytes = selective_scan_cc::ScanGradBytes,
    .sharding = selective_scan_cc::ScanGradSharding,
    .evaluate = selective_scan_cc::EvaluateScanGrad,
    .kernels = selective_scan_cc::kBackwardKernels,
    .access = MemoryAccess::kAlongSequence,
    .matrix_product = true,
};

}  // namespace orrery::ir
