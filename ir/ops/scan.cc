#include <algorithm>
#include <numeric>

#include "ir/op_info.h"
#include "ir/op_kind.h"
#include "ir/ops/movement.h"

// Ops whose results depend on where an element stands along a dimension: order, running sums,
// triangles, sequences turned around.

namespace orrery::ir {
namespace scan_cc {
namespace {

size_t AxisOf(const AttributeSet& attributes) {
  return static_cast<size_t>(attributes.Int("axis", 0));
}

absl::Status InferTopK(const OpTypes& op, TypeList& results) {
  const TensorType& x = *op.operands[0];
  ORRERY_RETURN_IF_ERROR(CheckAxis(op.attributes, x.dims.size()));
  const int64_t k = op.attributes.Int("k", 1);
  Dims dims = x.dims;
  int64_t& dim = dims[AxisOf(op.attributes)];
  if (k < 0 || k > dim) {
    return absl::InvalidArgumentError(
        absl::StrCat("k=", k, "; wanted at most the ", dim, " elements of the dimension"));
  }
  dim = k;
  ORRERY_RETURN_IF_ERROR(AddResult(op, dims, results));
  results.push_back({.dtype = DType::kI64, .dims = std::move(dims), .sharding = {}});
  return absl::OkStatus();
}

// Whether element a comes before b in the order that TopK asks for; not-a-number is the largest.
bool ComesFirst(const Tensor& x, int64_t a, int64_t b, bool largest) {
  if (!largest) std::swap(a, b);
  if (x.is_float()) {
    const double u = x.Number(a), v = x.Number(b);
    return u > v || (u != u && v == v);
  }
  const int64_t u = x.ints()[static_cast<size_t>(a)], v = x.ints()[static_cast<size_t>(b)];
  return x.dtype() == DType::kU64 ? static_cast<uint64_t>(u) > static_cast<uint64_t>(v) : u > v;
}

// Of equal elements the first one comes first. Always sorted, whatever `sorted` says.
absl::Status EvaluateTopK(Evaluation& e) {
  const Tensor& x = e.operand(0);
  const size_t axis = AxisOf(e.attributes);
  const bool largest = e.attributes.Int("largest", 1) != 0;
  const AroundDim around = SplitAround(x.dims(), axis);
  const int64_t k = e.results[0].dims()[axis];
  std::vector<int64_t> order(static_cast<size_t>(around.size));
  for (int64_t o = 0; o < around.outer; ++o) {
    for (int64_t n = 0; n < around.inner; ++n) {
      const auto position = [&](int64_t i) { return (o * around.size + i) * around.inner + n; };
      std::iota(order.begin(), order.end(), 0);
      std::stable_sort(order.begin(), order.end(), [&](int64_t a, int64_t b) {
        return ComesFirst(x, position(a), position(b), largest);
      });
      for (int64_t i = 0; i < k; ++i) {
        const int64_t to = (o * k + i) * around.inner + n;
        const int64_t from = order[static_cast<size_t>(i)];
        e.results[0].CopyElement(to, x, position(from));
        e.results[1].ints()[static_cast<size_t>(to)] = from;
      }
    }
  }
  return absl::OkStatus();
}

absl::Status TopKGradient(GradientContext& c) {
  const int64_t axis = c.attributes().Int("axis", 0);
  const int64_t size = c.operand_type(0).dims[static_cast<size_t>(axis)];
  c.SetOperandGradient(
      0, c.builder().Op(OpKind::kGatherElementsGrad, {c.result(1), c.result_gradient()},
                        c.GradientName(0), {{"axis", axis}, {"size", size}}));
  return c.builder().status();
}

absl::Status InferCumSum(const OpTypes& op, TypeList& results) {
  ORRERY_RETURN_IF_ERROR(CheckAxis(op.attributes, op.operands[0]->dims.size()));
  return InferUnary(op, results);
}

absl::Status EvaluateCumSum(Evaluation& e) {
  const Tensor& x = e.operand(0);
  Tensor& y = e.results[0];
  const AroundDim around = SplitAround(x.dims(), AxisOf(e.attributes));
  const bool reverse = e.attributes.Int("reverse", 0) != 0;
  const bool exclusive = e.attributes.Int("exclusive", 0) != 0;
  for (int64_t o = 0; o < around.outer; ++o) {
    for (int64_t n = 0; n < around.inner; ++n) {
      int64_t before = -1;
      for (int64_t i = 0; i < around.size; ++i) {
        const int64_t position = reverse ? around.size - 1 - i : i;
        const int64_t at = (o * around.size + position) * around.inner + n;
        if (before >= 0) y.CopyElement(at, y, before);
        if (before >= 0 && exclusive) AddElement(y, at, x, before);
        if (!exclusive) AddElement(y, at, x, at);
        before = at;
      }
    }
  }
  return absl::OkStatus();
}

absl::Status CumSumGradient(GradientContext& c) {
  AttributeSet back = c.attributes();
  back.Set("reverse", int64_t{c.attributes().Int("reverse", 0) == 0});
  return SetGradientOp(c, 0, OpKind::kCumSum, back);
}

absl::Status InferTrilu(const OpTypes& op, TypeList& results) {
  if (op.operands[0]->dims.size() >= 2) return InferUnary(op, results);
  return absl::InvalidArgumentError(
      absl::StrCat("got shape ", Show(op.operands[0]->dims), "; wanted [..,rows,columns]"));
}

ShardingRule TriluRule(const OpTypes& op, const TypeList& results) {
  const auto rank = static_cast<int64_t>(op.operands[0]->dims.size());
  return SplitOtherDims(op, results, {rank - 2, rank - 1});
}

absl::Status EvaluateTrilu(Evaluation& e) {
  Tensor& y = e.results[0];
  const bool upper = e.attributes.Int("upper", 1) != 0;
  const int64_t k = e.attributes.Int("k", 0);
  const size_t rank = y.dims().size();
  for (Odometer at(y.dims(), {}); !at.done(); at.Next()) {
    const int64_t diagonal = at.at()[rank - 1] - at.at()[rank - 2];
    if (upper ? diagonal >= k : diagonal <= k) y.CopyElement(at.index(), e.operand(0), at.index());
  }
  return absl::OkStatus();
}

absl::Status TriluGradient(GradientContext& c) {
  return SetGradientOp(c, 0, OpKind::kTrilu, c.attributes());
}

struct SequenceAxes {
  int64_t batch = 0, time = 0;
};

SequenceAxes SequenceAxesOf(const AttributeSet& attributes) {
  return {.batch = attributes.Int("batch_axis", 1), .time = attributes.Int("time_axis", 0)};
}

absl::Status InferReverseSequence(const OpTypes& op, TypeList& results) {
  const TensorType &x = *op.operands[0], &lengths = *op.operands[1];
  const SequenceAxes axes = SequenceAxesOf(op.attributes);
  ORRERY_RETURN_IF_ERROR(CheckAxes({axes.batch, axes.time}, x.dims.size()));
  ORRERY_RETURN_IF_ERROR(CheckIndices(lengths));
  if (lengths.dims != Dims{x.dims[static_cast<size_t>(axes.batch)]}) {
    return absl::InvalidArgumentError(
        absl::StrCat("got lengths ", Show(lengths.dims), " for ", Show(x.dims),
                     "; wanted one for each position along dimension ", axes.batch));
  }
  return InferUnary(op, results);
}

ShardingRule ReverseSequenceRule(const OpTypes& op, const TypeList& results) {
  const SequenceAxes axes = SequenceAxesOf(op.attributes);
  ShardingRule rule = SplitOtherDims(op, results, {axes.time});
  rule.operands.push_back({static_cast<int8_t>(axes.batch)});
  return rule;
}

absl::Status EvaluateReverseSequence(Evaluation& e) {
  const Tensor &x = e.operand(0), &lengths = e.operand(1);
  const SequenceAxes axes = SequenceAxesOf(e.attributes);
  const auto batch = static_cast<size_t>(axes.batch), time = static_cast<size_t>(axes.time);
  const int64_t stride = StridesOf(x.dims())[time];
  for (const int64_t length : lengths.ints()) {
    if (length >= 0 && length <= x.dims()[time]) continue;
    return absl::OutOfRangeError(
        absl::StrCat("a sequence of ", length, " in a dimension of ", x.dims()[time]));
  }
  for (Odometer at(x.dims(), {}); !at.done(); at.Next()) {
    const int64_t length = lengths.ints()[static_cast<size_t>(at.at()[batch])];
    const int64_t step = at.at()[time];
    const int64_t from = step < length ? length - 1 - step : step;
    e.results[0].CopyElement(at.index(), x, at.index() + (from - step) * stride);
  }
  return absl::OkStatus();
}

absl::Status ReverseSequenceGradient(GradientContext& c) {
  c.SetOperandGradient(0,
                       c.builder().Op(OpKind::kReverseSequence, {c.result_gradient(), c.operand(1)},
                                      c.GradientName(0), c.attributes()));
  return c.builder().status();
}

}  // namespace
}  // namespace scan_cc

extern const OpInfo kTopKOp = {
    .name = "TopK",
    .summary =
        "the `k` elements of x that are `largest` (or smallest) along dimension `axis`, and "
        "where they stand",
    .operands = 1,
    .results = 2,
    .infer = scan_cc::InferTopK,
    .flops = OneFlopAFirstElement,
    .sharding = SplitUntouchedDims,
    .evaluate = scan_cc::EvaluateTopK,
    .gradient = scan_cc::TopKGradient,
};

extern const OpInfo kCumSumOp = {
    .name = "CumSum",
    .summary =
        "sums of x up to each position along dimension `axis`, without that one when "
        "`exclusive`, from the end when `reverse`",
    .operands = 1,
    .infer = scan_cc::InferCumSum,
    .flops = OneFlopAnElement,
    .sharding = SplitUntouchedDims,
    .evaluate = scan_cc::EvaluateCumSum,
    .gradient = scan_cc::CumSumGradient,
    .linear = true,
};

extern const OpInfo kTriluOp = {
    .name = "Trilu",
    .summary = "x [..,rows,columns] above (`upper`) or below diagonal `k`, and with it; else 0",
    .operands = 1,
    .infer = scan_cc::InferTrilu,
    .sharding = scan_cc::TriluRule,
    .evaluate = scan_cc::EvaluateTrilu,
    .gradient = scan_cc::TriluGradient,
    .linear = true,
};

extern const OpInfo kReverseSequenceOp = {
    .name = "ReverseSequence",
    .summary =
        "x with the first lengths[b] elements along `time_axis` in reverse, for each position b "
        "along `batch_axis`",
    .operands = 2,
    .infer = scan_cc::InferReverseSequence,
    .sharding = scan_cc::ReverseSequenceRule,
    .evaluate = scan_cc::EvaluateReverseSequence,
    .gradient = scan_cc::ReverseSequenceGradient,
    .no_gradient = 0b10,
};

}  // namespace orrery::ir
