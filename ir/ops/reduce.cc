#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>

#include "ir/op_info.h"
#include "ir/op_kind.h"
#include "ir/ops/pointwise.h"
#include "support/status.h"

// Reductions over the dimensions `axes`, which vanish unless keepdims=1.

namespace orrery::ir {
namespace reduce_cc {
namespace {

bool Reduces(const std::vector<int64_t>& axes, size_t dim) {
  return std::find(axes.begin(), axes.end(), static_cast<int64_t>(dim)) != axes.end();
}

bool KeepsDims(const AttributeSet& attributes) { return attributes.Int("keepdims", 0) != 0; }

absl::Status InferReduce(const OpTypes& op, TypeList& results) {
  const TensorType& x = *op.operands[0];
  const std::vector<int64_t> axes = op.attributes.Ints("axes");
  for (const int64_t axis : axes) {
    if (axis >= 0 && axis < static_cast<int64_t>(x.dims.size())) continue;
    return absl::InvalidArgumentError(
        absl::StrCat("axis ", axis, " is none of the ", x.dims.size(), " dimensions"));
  }
  const bool keep = KeepsDims(op.attributes);
  Dims dims;
  for (size_t d = 0; d < x.dims.size(); ++d) {
    if (!Reduces(axes, d)) {
      dims.push_back(x.dims[d]);
    } else if (keep) {
      dims.push_back(1);
    }
  }
  results.push_back({.dtype = x.dtype, .dims = std::move(dims), .sharding = {}});
  return absl::OkStatus();
}

absl::Status InferReduceNumbers(const OpTypes& op, TypeList& results) {
  ORRERY_RETURN_IF_ERROR(WantNumbers(op));
  return InferReduce(op, results);
}

absl::Status InferReduceFloat(const OpTypes& op, TypeList& results) {
  ORRERY_RETURN_IF_ERROR(CheckFloat(op));
  return InferReduce(op, results);
}

template <int flops>
double FlopsAnOperandElement(const OpTypes& op, const TypeList&) {
  return flops * static_cast<double>(ElementCount(op.operands[0]->dims));
}

// Every dimension may be split. What is reduced leaves parts of a sum.
ShardingRule SumSharding(const OpTypes& op, const TypeList&) {
  const std::vector<int64_t> axes = op.attributes.Ints("axes");
  ShardingRule::Factors all, kept;
  for (size_t d = 0; d < op.operands[0]->dims.size(); ++d) {
    all.push_back(static_cast<int8_t>(d));
    if (!Reduces(axes, d)) {
      kept.push_back(static_cast<int8_t>(d));
    } else if (KeepsDims(op.attributes)) {
      kept.push_back(kNoFactor);
    }
  }
  return {.operands = {all}, .results = {kept}};
}

// The dimensions that are reduced stay whole: parts of a maximum do not add up to it.
ShardingRule WholeSharding(const OpTypes& op, const TypeList& results) {
  ShardingRule rule = SumSharding(op, results);
  for (const int64_t axis : op.attributes.Ints("axes")) {
    rule.operands[0][static_cast<size_t>(axis)] = kNoFactor;
  }
  return rule;
}

// Calls visit(position in x, position in the result) for each element of x.
template <typename F>
void ForEachReduced(const Evaluation& e, F visit) {
  const Dims& from = e.operand(0).dims();
  Dims kept = from;
  for (const int64_t axis : e.attributes.Ints("axes")) kept[static_cast<size_t>(axis)] = 1;
  for (Odometer at(from, {BroadcastStrides(kept, from)}); !at.done(); at.Next()) {
    visit(at.index(), at.offset(0));
  }
}

// Folds the elements with `combine`, beginning with what `first` gives for a type.
template <typename First, typename Combine>
absl::Status EvaluateFold(Evaluation& e, First first, Combine combine) {
  const Tensor& x = e.operand(0);
  Tensor& y = e.results[0];
  WithArithmeticOf(x.dtype(), [&](auto zero) {
    using T = decltype(zero);
    for (int64_t i = 0; i < y.size(); ++i) SetElement(y, i, first(zero));
    ForEachReduced(e, [&](int64_t from, int64_t to) {
      SetElement(y, to, combine(ElementOf<T>(y, to), ElementOf<T>(x, from)));
    });
  });
  return absl::OkStatus();
}

absl::Status EvaluateSum(Evaluation& e) {
  return EvaluateFold(
      e, [](auto zero) { return zero; },
      [](auto sum, auto x) { return Wrapping(sum, x, std::plus<>()); });
}

absl::Status EvaluateProduct(Evaluation& e) {
  return EvaluateFold(
      e, [](auto zero) { return static_cast<decltype(zero)>(1); },
      [](auto product, auto x) { return Wrapping(product, x, std::multiplies<>()); });
}

template <typename T>
constexpr T Lowest() {
  using Limits = std::numeric_limits<T>;
  return Limits::has_infinity ? -Limits::infinity() : Limits::lowest();
}

template <typename T>
constexpr T Highest() {
  using Limits = std::numeric_limits<T>;
  return Limits::has_infinity ? Limits::infinity() : Limits::max();
}

absl::Status EvaluateMax(Evaluation& e) {
  return EvaluateFold(
      e, [](auto zero) { return Lowest<decltype(zero)>(); },
      [](auto most, auto x) { return x > most || x != x ? x : most; });
}

absl::Status EvaluateMin(Evaluation& e) {
  return EvaluateFold(
      e, [](auto zero) { return Highest<decltype(zero)>(); },
      [](auto least, auto x) { return x < least || x != x ? x : least; });
}

// Where the operand is split along what is reduced, the local mean is over a part of the elements
// only, and is to be added to those of the other ranks: of as many elements as all have together,
// as some may have less.
absl::Status EvaluateMean(Evaluation& e) {
  ORRERY_RETURN_IF_ERROR(EvaluateSum(e));
  Tensor& y = e.results[0];
  if (y.size() == 0) return absl::OkStatus();
  int64_t count = 1, means = 1;
  for (size_t d = 0; d < e.operand(0).dims().size(); ++d) count *= e.OperandWhole(0, d);
  for (size_t d = 0; d < y.dims().size(); ++d) means *= e.ResultWhole(0, d);
  count /= means;
  for (double& sum : y.floats()) sum /= static_cast<double>(count);
  for (int64_t& sum : y.ints()) sum = count == 0 ? 0 : sum / count;
  return absl::OkStatus();
}

absl::Status EvaluateLogSumExp(Evaluation& e) {
  ORRERY_RETURN_IF_ERROR(EvaluateMax(e));
  Tensor& y = e.results[0];
  const Tensor& x = e.operand(0);
  std::vector<double> sums(y.floats().size());
  ForEachReduced(e, [&](int64_t from, int64_t to) {
    const double most = y.Number(to);
    sums[static_cast<size_t>(to)] += std::isinf(most) ? 1 : std::exp(x.Number(from) - most);
  });
  for (size_t i = 0; i < sums.size(); ++i) {
    if (std::isfinite(y.floats()[i])) y.floats()[i] += std::log(sums[i]);
  }
  return absl::OkStatus();
}

// Puts back the dimensions that the op took away, with size 1.
ValueId WithDims(GradientContext& c, ValueId value) {
  const std::vector<int64_t> axes = c.attributes().Ints("axes");
  if (KeepsDims(c.attributes()) || axes.empty()) return value;
  std::vector<int64_t> sorted = axes;
  std::sort(sorted.begin(), sorted.end());
  sorted.erase(std::unique(sorted.begin(), sorted.end()), sorted.end());
  return c.builder().Op(OpKind::kUnsqueeze, {value}, "", {{"axes", sorted}});
}

// Whether the op reduces over dimension `dim`.
bool IsOver(const GradientContext& c, int dim) {
  const std::vector<int64_t> axes = c.attributes().Ints("axes");
  return std::find(axes.begin(), axes.end(), dim) != axes.end();
}
// Whether it does over the batch, or one of both where samples meet each other.
bool IsOverBatch(const GradientContext& c) {
  return IsOver(c, c.batch_dim(0)) || IsOver(c, c.last_batch_dim(0));
}

// The gradient of the result, repeated to the shape of the operand. An Expand makes one dimension
// of the batch; a first one does for another.
ValueId Repeated(GradientContext& c, absl::string_view name) {
  const Dims dims = c.operand_type(0).dims;
  const int first = c.batch_dim(0), last = c.last_batch_dim(0);
  ValueId gradient = WithDims(c, c.result_gradient());
  const bool both = first != last && IsOver(c, first) && IsOver(c, last);
  if (both) {
    std::vector<int64_t> shape(dims.size(), -1);
    shape[static_cast<size_t>(first)] = dims[static_cast<size_t>(first)];
    gradient = c.builder().Op(OpKind::kExpand, {gradient}, "",
                              {{"shape", shape}, {"batch_dim", static_cast<int64_t>(first)}});
  }
  std::vector<int64_t> shape(dims.size(), -1);
  for (const int64_t axis : c.attributes().Ints("axes")) {
    if (!both || axis != first) shape[static_cast<size_t>(axis)] = dims[static_cast<size_t>(axis)];
  }
  AttributeSet attributes = {{"shape", shape}};
  const int made = both || !IsOver(c, first) ? last : first;
  if (IsOver(c, made)) attributes.Set("batch_dim", static_cast<int64_t>(made));
  return c.builder().Op(OpKind::kExpand, {gradient}, name, attributes);
}

absl::Status SumGradient(GradientContext& c) {
  c.SetOperandGradient(0, Repeated(c, c.GradientName(0)));
  return c.builder().status();
}

absl::Status MeanGradient(GradientContext& c) {
  const auto elements = [](const TensorType& type) {
    return static_cast<double>(ElementCount(type.dims));
  };
  const double share = elements(c.builder().type(c.result())) / elements(c.operand_type(0));
  AttributeSet attributes = {{"factor", share}};
  if (IsOverBatch(c)) attributes.Set("over_batch", int64_t{1});
  c.SetOperandGradient(
      0, c.builder().Op(OpKind::kScale, {Repeated(c, "")}, c.GradientName(0), attributes));
  return c.builder().status();
}

// To the elements that are the extreme.
absl::Status ExtremeGradient(GradientContext& c) {
  Builder& b = c.builder();
  const ValueId chosen = b.Op(OpKind::kEqual, {c.operand(0), WithDims(c, c.result())});
  const ValueId zero = ScalarConstant(b, c.operand_type(0).dtype, 0);
  c.SetOperandGradient(
      0, b.Op(OpKind::kWhere, {chosen, WithDims(c, c.result_gradient()), zero}, c.GradientName(0)));
  return b.status();
}

// dx = y dy / x. An element that is zero gives no number.
absl::Status ProductGradient(GradientContext& c) {
  Builder& b = c.builder();
  const ValueId total = b.Op(OpKind::kMul, {c.result(), c.result_gradient()});
  c.SetOperandGradient(0,
                       b.Op(OpKind::kDiv, {WithDims(c, total), c.operand(0)}, c.GradientName(0)));
  return b.status();
}

// dx = exp(x - y) dy.
absl::Status LogSumExpGradient(GradientContext& c) {
  Builder& b = c.builder();
  const ValueId shifted = b.Op(OpKind::kSub, {c.operand(0), WithDims(c, c.result())});
  const ValueId weight = b.Op(OpKind::kExp, {shifted});
  c.SetOperandGradient(
      0, b.Op(OpKind::kMul, {weight, WithDims(c, c.result_gradient())}, c.GradientName(0)));
  return b.status();
}

}  // namespace
}  // namespace reduce_cc

extern const OpInfo kReduceSumOp = {
    .name = "ReduceSum",
    .summary = "the sum of x over the dimensions `axes`, which vanish unless keepdims=1",
    .operands = 1,
    .infer = reduce_cc::InferReduceNumbers,
    .flops = reduce_cc::FlopsAnOperandElement<1>,
    .sharding = reduce_cc::SumSharding,
    .evaluate = reduce_cc::EvaluateSum,
    .gradient = reduce_cc::SumGradient,
    .linear = true,
};

extern const OpInfo kReduceMeanOp = {
    .name = "ReduceMean",
    .summary = "the mean of x over the dimensions `axes`, which vanish unless keepdims=1",
    .operands = 1,
    .infer = reduce_cc::InferReduceNumbers,
    .flops = reduce_cc::FlopsAnOperandElement<1>,
    .sharding = reduce_cc::SumSharding,
    .evaluate = reduce_cc::EvaluateMean,
    .gradient = reduce_cc::MeanGradient,
    .linear = true,
};

extern const OpInfo kReduceMaxOp = {
    .name = "ReduceMax",
    .summary = "the greatest of x over the dimensions `axes`, which vanish unless keepdims=1",
    .operands = 1,
    .infer = reduce_cc::InferReduce,
    .flops = reduce_cc::FlopsAnOperandElement<1>,
    .sharding = reduce_cc::WholeSharding,
    .evaluate = reduce_cc::EvaluateMax,
    .gradient = reduce_cc::ExtremeGradient,
};

extern const OpInfo kReduceMinOp = {
    .name = "ReduceMin",
    .summary = "the least of x over the dimensions `axes`, which vanish unless keepdims=1",
    .operands = 1,
    .infer = reduce_cc::InferReduce,
    .flops = reduce_cc::FlopsAnOperandElement<1>,
    .sharding = reduce_cc::WholeSharding,
    .evaluate = reduce_cc::EvaluateMin,
    .gradient = reduce_cc::ExtremeGradient,
};

extern const OpInfo kReduceProdOp = {
    .name = "ReduceProd",
    .summary = "the product of x over the dimensions `axes`, which vanish unless keepdims=1",
    .operands = 1,
    .infer = reduce_cc::InferReduceNumbers,
    .flops = reduce_cc::FlopsAnOperandElement<1>,
    .sharding = reduce_cc::WholeSharding,
    .evaluate = reduce_cc::EvaluateProduct,
    .gradient = reduce_cc::ProductGradient,
};

extern const OpInfo kReduceLogSumExpOp = {
    .name = "ReduceLogSumExp",
    .summary =
        "log of the sum of exp(x) over the dimensions `axes`, which vanish unless keepdims=1",
    .operands = 1,
    .infer = reduce_cc::InferReduceFloat,
    .flops = reduce_cc::FlopsAnOperandElement<kExpFlops + 3>,
    .sharding = reduce_cc::WholeSharding,
    .evaluate = reduce_cc::EvaluateLogSumExp,
    .gradient = reduce_cc::LogSumExpGradient,
};

}  // namespace orrery::ir
