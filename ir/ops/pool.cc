#include <cmath>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "ir/builder.h"
#include "ir/op_info.h"
#include "ir/op_kind.h"
#include "ir/ops/checks.h"
#include "ir/ops/kernels.h"
#include "ir/ops/window.h"
#include "support/status.h"

// Pools: one number of all that a window of [batch, channels, ..] sees.

namespace orrery::ir {
namespace pool_cc {
namespace {

absl::Status CheckImage(const OpTypes& op, size_t i) {
  return CheckRankAtLeast(op, i, 3, "[batch,channels,..]");
}

Dims WithSpatial(const Dims& dims, const Dims& spatial) {
  Dims all(dims.begin(), dims.begin() + 2);
  all.insert(all.end(), spatial.begin(), spatial.end());
  return all;
}

// The dims of the pooled image.
absl::StatusOr<Dims> PooledDims(const OpTypes& op) {
  ORRERY_RETURN_IF_ERROR(CheckImage(op, 0));
  const Dims& x = op.operands[0]->dims;
  ORRERY_ASSIGN_OR_RETURN(const Window window, PoolWindow(op.attributes, x.size() - 2));
  ORRERY_ASSIGN_OR_RETURN(const Dims counts, WindowCounts(window, SpatialDims(x)));
  return WithSpatial(x, counts);
}

absl::Status InferPool(const OpTypes& op, TypeList& results) {
  ORRERY_ASSIGN_OR_RETURN(const Dims dims, PooledDims(op));
  AddResult(results, op.operands[0]->dtype, dims);
  return absl::OkStatus();
}

absl::Status InferMaxPool(const OpTypes& op, TypeList& results) {
  ORRERY_RETURN_IF_ERROR(InferPool(op, results));
  if (op.attributes.Int("indices", 0) != 0) AddResult(results, DType::kI64, results[0].dims);
  return absl::OkStatus();
}

absl::Status CheckPower(const OpTypes& op) {
  ORRERY_RETURN_IF_ERROR(CheckFloat(op, 0));
  if (op.attributes.Int("p", 2) >= 1) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("p=", op.attributes.Int("p", 2), "; wanted at least 1"));
}

absl::Status InferLpPool(const OpTypes& op, TypeList& results) {
  ORRERY_RETURN_IF_ERROR(CheckPower(op));
  return InferPool(op, results);
}

// Operand 0 is x, the others are like the pooled image.
absl::Status InferPoolGrad(const OpTypes& op, TypeList& results) {
  ORRERY_RETURN_IF_ERROR(CheckFloat(op, 0));
  ORRERY_ASSIGN_OR_RETURN(const Dims dims, PooledDims(op));
  for (size_t i = 1; i < op.operands.size(); ++i) {
    ORRERY_RETURN_IF_ERROR(CheckTypeOfFirst(op, i));
    ORRERY_RETURN_IF_ERROR(CheckDims(op, i, dims, "as the result of the pool"));
  }
  return InferUnary(op, results);
}

absl::Status InferLpPoolGrad(const OpTypes& op, TypeList& results) {
  ORRERY_RETURN_IF_ERROR(CheckPower(op));
  return InferPoolGrad(op, results);
}

absl::Status InferAveragePoolGrad(const OpTypes& op, TypeList& results) {
  ORRERY_RETURN_IF_ERROR(CheckImage(op, 0));
  ORRERY_RETURN_IF_ERROR(CheckFloat(op, 0));
  const Dims& dy = op.operands[0]->dims;
  const std::vector<int64_t> spatial = op.attributes.Ints("spatial");
  bool fits = spatial.size() == dy.size() - 2;
  for (const int64_t size : spatial) fits = fits && size > 0 && size < (int64_t{1} << 40);
  if (!fits) {
    return absl::InvalidArgumentError(
        absl::StrCat("spatial=[", absl::StrJoin(spatial, ","), "]; wanted the sizes of the image"));
  }
  const Dims dims = WithSpatial(dy, Dims(spatial.begin(), spatial.end()));
  ORRERY_ASSIGN_OR_RETURN(const Window window, PoolWindow(op.attributes, spatial.size()));
  ORRERY_ASSIGN_OR_RETURN(const Dims counts, WindowCounts(window, SpatialDims(dims)));
  ORRERY_RETURN_IF_ERROR(CheckDims(op, 0, WithSpatial(dy, counts), "as the result of the pool"));
  AddResult(results, op.operands[0]->dtype, dims);
  return absl::OkStatus();
}

// One operation for each element that a window sees.
double PoolFlops(const OpTypes& op, const Dims& pooled) {
  double flops = static_cast<double>(ElementCount(pooled));
  for (const int64_t size : op.attributes.Ints("kernel")) flops *= static_cast<double>(size);
  return flops;
}

double ForwardFlops(const OpTypes& op, const TypeList& results) {
  return PoolFlops(op, results[0].dims);
}

double BackwardFlops(const OpTypes& op, const TypeList&) {
  return PoolFlops(op, op.operands.back()->dims);
}

// Batch and channels may be split.
ShardingRule PoolSharding(const OpTypes& op, const TypeList& results) {
  ShardingRule::Factors factors(op.operands[0]->dims.size(), kNoFactor);
  factors[0] = 0;
  factors[1] = 1;
  ShardingRule rule;
  rule.operands.assign(op.operands.size(), factors);
  rule.results.assign(results.size(), factors);
  rule.exact = results.size() == 1;  // indices count from the start of what a rank holds
  return rule;
}

// A pool on tensors: planes of the image, and what each window sees of one.
class Pool {
 public:
  static absl::StatusOr<Pool> Create(const Evaluation& e, const Dims& image, const Dims& pooled) {
    ORRERY_ASSIGN_OR_RETURN(Window window, PoolWindow(e.attributes, image.size() - 2));
    ORRERY_RETURN_IF_ERROR(CheckTaps(window, SpatialDims(pooled)));
    return Pool(std::move(window), image, pooled);
  }

  int64_t pixels() const { return pixels_; }
  int64_t positions() const { return positions_; }
  const Dims& input() const { return input_; }

  /// Calls f(plane, position) for each window.
  template <typename F>
  void ForEachWindow(F f) const {
    for (int64_t plane = 0; plane < planes_; ++plane) {
      for (int64_t position = 0; position < positions_; ++position) f(plane, position);
    }
  }
  /// Calls f(offset in the image) for each element that a window sees.
  template <typename F>
  void ForEachSeen(int64_t plane, int64_t position, F f) const {
    for (size_t at = static_cast<size_t>(position); at < taps_.size();
         at += static_cast<size_t>(positions_)) {
      if (taps_[at] >= 0) f(plane * pixels_ + taps_[at]);
    }
  }
  /// Offset of the largest element that a window sees; -1 when it sees padding alone.
  int64_t Largest(const Tensor& x, int64_t plane, int64_t position) const {
    int64_t largest = -1;
    ForEachSeen(plane, position, [&](int64_t at) {
      if (largest < 0 || x.Number(at) > x.Number(largest)) largest = at;
    });
    return largest;
  }
  /// What an average over each window divides by.
  std::vector<double> Divisors(bool with_padding) const {
    Window window = window_;
    Dims input = input_;
    for (size_t d = 0; d < input.size() && with_padding; ++d) {
      input[d] += window.before[d] + window.after[d];
      window.before[d] = 0;
    }
    const std::vector<int64_t> taps = WindowTaps(window, input, counts_);
    std::vector<double> divisors(static_cast<size_t>(positions_), 0);
    for (size_t at = 0; at < taps.size(); ++at) {
      if (taps[at] >= 0) divisors[at % divisors.size()] += 1;
    }
    return divisors;
  }

 private:
  Pool(Window window, const Dims& image, const Dims& pooled)
      : window_(std::move(window)),
        input_(SpatialDims(image)),
        counts_(SpatialDims(pooled)),
        planes_(image[0] * image[1]),
        pixels_(ElementCount(input_)),
        positions_(ElementCount(counts_)),
        taps_(WindowTaps(window_, input_, counts_)) {}

  Window window_;
  Dims input_, counts_;
  int64_t planes_, pixels_, positions_;
  std::vector<int64_t> taps_;
};

// Offset `at` of a plane of dims `spatial` when the first spatial dimension is the fastest.
int64_t ColumnMajor(int64_t at, const Dims& spatial) {
  int64_t offset = 0, stride = ElementCount(spatial);
  for (size_t d = spatial.size(); d-- > 0;) {
    stride /= spatial[d];
    offset += at % spatial[d] * stride;
    at /= spatial[d];
  }
  return offset;
}

absl::Status EvaluateMaxPool(Evaluation& e) {
  const Tensor& x = e.operand(0);
  ORRERY_ASSIGN_OR_RETURN(const Pool pool, Pool::Create(e, x.dims(), e.results[0].dims()));
  const bool columns = e.attributes.Int("storage_order", 0) != 0;
  pool.ForEachWindow([&](int64_t plane, int64_t position) {
    const int64_t largest = pool.Largest(x, plane, position),
                  to = plane * pool.positions() + position;
    if (largest < 0) {
      if (x.is_float()) e.results[0].SetNumber(to, -HUGE_VAL);
      return;
    }
    e.results[0].CopyElement(to, x, largest);
    if (e.results.size() < 2) return;
    const int64_t start = plane * pool.pixels();
    e.results[1].ints()[static_cast<size_t>(to)] =
        columns ? start + ColumnMajor(largest - start, pool.input()) : largest;
  });
  return absl::OkStatus();
}

absl::Status EvaluateMaxPoolGrad(Evaluation& e) {
  const Tensor &x = e.operand(0), &dy = e.operand(1);
  ORRERY_ASSIGN_OR_RETURN(const Pool pool, Pool::Create(e, x.dims(), dy.dims()));
  pool.ForEachWindow([&](int64_t plane, int64_t position) {
    const int64_t largest = pool.Largest(x, plane, position);
    if (largest < 0) return;
    e.results[0].floats()[static_cast<size_t>(largest)] +=
        dy.Number(plane * pool.positions() + position);
  });
  return absl::OkStatus();
}

bool CountsPadding(const Evaluation& e) { return e.attributes.Int("count_include_pad", 0) != 0; }

absl::Status EvaluateAveragePool(Evaluation& e) {
  const Tensor& x = e.operand(0);
  ORRERY_ASSIGN_OR_RETURN(const Pool pool, Pool::Create(e, x.dims(), e.results[0].dims()));
  const std::vector<double> divisors = pool.Divisors(CountsPadding(e));
  pool.ForEachWindow([&](int64_t plane, int64_t position) {
    double sum = 0;
    pool.ForEachSeen(plane, position, [&](int64_t at) { sum += x.Number(at); });
    const double divisor = divisors[static_cast<size_t>(position)];
    e.results[0].SetNumber(plane * pool.positions() + position, divisor > 0 ? sum / divisor : 0);
  });
  return absl::OkStatus();
}

absl::Status EvaluateAveragePoolGrad(Evaluation& e) {
  const Tensor& dy = e.operand(0);
  ORRERY_ASSIGN_OR_RETURN(const Pool pool, Pool::Create(e, e.results[0].dims(), dy.dims()));
  const std::vector<double> divisors = pool.Divisors(CountsPadding(e));
  pool.ForEachWindow([&](int64_t plane, int64_t position) {
    const double part = dy.Number(plane * pool.positions() + position);
    pool.ForEachSeen(plane, position, [&](int64_t at) {
      e.results[0].floats()[static_cast<size_t>(at)] +=
          part / divisors[static_cast<size_t>(position)];
    });
  });
  return absl::OkStatus();
}

absl::Status EvaluateLpPool(Evaluation& e) {
  const Tensor& x = e.operand(0);
  ORRERY_ASSIGN_OR_RETURN(const Pool pool, Pool::Create(e, x.dims(), e.results[0].dims()));
  const auto p = static_cast<double>(e.attributes.Int("p", 2));
  pool.ForEachWindow([&](int64_t plane, int64_t position) {
    double sum = 0;
    pool.ForEachSeen(plane, position,
                     [&](int64_t at) { sum += std::pow(std::abs(x.Number(at)), p); });
    e.results[0].SetNumber(plane * pool.positions() + position, std::pow(sum, 1 / p));
  });
  return absl::OkStatus();
}

// dx = dy sign(x) (|x| / y)^(p - 1), from all windows that see x.
absl::Status EvaluateLpPoolGrad(Evaluation& e) {
  const Tensor &x = e.operand(0), &y = e.operand(1), &dy = e.operand(2);
  ORRERY_ASSIGN_OR_RETURN(const Pool pool, Pool::Create(e, x.dims(), dy.dims()));
  const auto p = static_cast<double>(e.attributes.Int("p", 2));
  pool.ForEachWindow([&](int64_t plane, int64_t position) {
    const int64_t from = plane * pool.positions() + position;
    if (y.Number(from) == 0) return;
    pool.ForEachSeen(plane, position, [&](int64_t at) {
      const double part = std::pow(std::abs(x.Number(at)) / y.Number(from), p - 1);
      e.results[0].floats()[static_cast<size_t>(at)] +=
          dy.Number(from) * std::copysign(part, x.Number(at));
    });
  });
  return absl::OkStatus();
}

absl::Status MaxPoolGradient(GradientContext& c) {
  AttributeSet window = WindowAttributes(c.attributes());
  c.SetOperandGradient(0, c.builder().Op(OpKind::kMaxPoolGrad, {c.operand(0), c.result_gradient()},
                                         c.GradientName(0), window));
  return c.builder().status();
}

absl::Status AveragePoolGradient(GradientContext& c) {
  AttributeSet window = WindowAttributes(c.attributes());
  const Dims spatial = SpatialDims(c.operand_type(0).dims);
  window.Set("spatial", std::vector<int64_t>(spatial.begin(), spatial.end()));
  c.SetOperandGradient(0, c.builder().Op(OpKind::kAveragePoolGrad, {c.result_gradient()},
                                         c.GradientName(0), window));
  return c.builder().status();
}

absl::Status LpPoolGradient(GradientContext& c) {
  c.SetOperandGradient(
      0, c.builder().Op(OpKind::kLpPoolGrad, {c.operand(0), c.result(), c.result_gradient()},
                        c.GradientName(0), WindowAttributes(c.attributes())));
  return c.builder().status();
}

}  // namespace
}  // namespace pool_cc

extern const OpInfo kMaxPoolOp = {
    .name = "MaxPool",
    .summary = "the largest element of each window of `kernel`; indices=1: and where it stands",
    .operands = 1,
    .results = OpInfo::kVariadic,
    .infer = pool_cc::InferMaxPool,
    .flops = pool_cc::ForwardFlops,
    .sharding = pool_cc::PoolSharding,
    .evaluate = pool_cc::EvaluateMaxPool,
    .gradient = pool_cc::MaxPoolGradient,
};

extern const OpInfo kMaxPoolGradOp = {
    .name = "MaxPoolGrad",
    .summary = "gradient of MaxPool(x) from x and that of its result",
    .operands = 2,
    .infer = pool_cc::InferPoolGrad,
    .flops = pool_cc::BackwardFlops,
    .sharding = pool_cc::PoolSharding,
    .evaluate = pool_cc::EvaluateMaxPoolGrad,
};

extern const OpInfo kAveragePoolOp = {
    .name = "AveragePool",
    .summary = "the mean of each window of `kernel`; count_include_pad=1: padding counts as zeros",
    .operands = 1,
    .infer = pool_cc::InferPool,
    .flops = pool_cc::ForwardFlops,
    .sharding = pool_cc::PoolSharding,
    .evaluate = pool_cc::EvaluateAveragePool,
    .gradient = pool_cc::AveragePoolGradient,
};

extern const OpInfo kAveragePoolGradOp = {
    .name = "AveragePoolGrad",
    .summary = "gradient of AveragePool(x), of the dims `spatial`, from that of its result",
    .operands = 1,
    .infer = pool_cc::InferAveragePoolGrad,
    .flops = pool_cc::BackwardFlops,
    .sharding = pool_cc::PoolSharding,
    .evaluate = pool_cc::EvaluateAveragePoolGrad,
};

extern const OpInfo kLpPoolOp = {
    .name = "LpPool",
    .summary = "the p-norm of each window of `kernel`",
    .operands = 1,
    .infer = pool_cc::InferLpPool,
    .flops = pool_cc::ForwardFlops,
    .sharding = pool_cc::PoolSharding,
    .evaluate = pool_cc::EvaluateLpPool,
    .gradient = pool_cc::LpPoolGradient,
};

extern const OpInfo kLpPoolGradOp = {
    .name = "LpPoolGrad",
    .summary = "gradient of LpPool(x) from x, its result and that one's gradient",
    .operands = 3,
    .infer = pool_cc::InferLpPoolGrad,
    .flops = pool_cc::BackwardFlops,
    .sharding = pool_cc::PoolSharding,
    .evaluate = pool_cc::EvaluateLpPoolGrad,
};

}  // namespace orrery::ir
