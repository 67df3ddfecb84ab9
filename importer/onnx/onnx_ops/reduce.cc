#include <algorithm>
#include <numeric>
#include <vector>

#include "absl/strings/str_cat.h"
#include "importer/onnx/onnx_op.h"
#include "ir/op_kind.h"
#include "support/status.h"

// Reductions. What the IR has no kind for is said by those that it has.

namespace orrery::importer {
namespace reduce_cc {
namespace {

using Value = absl::StatusOr<ir::ValueId>;

// Counted from the front, in order, each once.
absl::StatusOr<std::vector<int64_t>> Normalized(std::vector<int64_t> axes, size_t rank) {
  for (int64_t& axis : axes) {
    ORRERY_ASSIGN_OR_RETURN(const size_t normalized, ir::NormalizeAxis(axis, rank));
    axis = static_cast<int64_t>(normalized);
  }
  std::sort(axes.begin(), axes.end());
  axes.erase(std::unique(axes.begin(), axes.end()), axes.end());
  return axes;
}

// The attribute `axes` before opset 18 (ReduceSum: 13), later an input. None means all, unless
// noop_with_empty_axes says: none.
absl::StatusOr<std::vector<int64_t>> AxesOf(NodeContext& c) {
  const size_t rank = c.input_type(0).dims.size();
  std::vector<int64_t> axes = c.Ints("axes");
  if (c.has_input(1)) {
    ORRERY_ASSIGN_OR_RETURN(axes, c.IntegerInput(1));
  }
  if (axes.empty() && c.Int("noop_with_empty_axes", 0) == 0) {
    axes.resize(rank);
    std::iota(axes.begin(), axes.end(), 0);
  }
  return Normalized(std::move(axes), rank);
}

Value Reduce(NodeContext& c, ir::OpKind kind, ir::ValueId x) {
  ORRERY_ASSIGN_OR_RETURN(const std::vector<int64_t> axes, AxesOf(c));
  if (axes.empty()) return x;
  ir::AttributeSet attributes = {{"axes", axes}};
  if (c.Int("keepdims", 1) != 0) attributes.Set("keepdims", int64_t{1});
  return c.Op(kind, {x}, attributes);
}

template <ir::OpKind kind>
absl::Status LowerReduce(NodeContext& c) {
  return c.Return(Reduce(c, kind, c.input(0)));
}

Value SumOfSquares(NodeContext& c) {
  ORRERY_ASSIGN_OR_RETURN(const ir::ValueId squares,
                          c.Op(ir::OpKind::kMul, {c.input(0), c.input(0)}));
  return Reduce(c, ir::OpKind::kReduceSum, squares);
}

absl::Status LowerReduceSumSquare(NodeContext& c) { return c.Return(SumOfSquares(c)); }

absl::Status LowerReduceL2(NodeContext& c) {
  ORRERY_ASSIGN_OR_RETURN(const ir::ValueId sum, SumOfSquares(c));
  return c.Return(c.Op(ir::OpKind::kSqrt, {sum}));
}

absl::Status LowerReduceL1(NodeContext& c) {
  ORRERY_ASSIGN_OR_RETURN(const ir::ValueId magnitudes, c.Op(ir::OpKind::kAbs, {c.input(0)}));
  return c.Return(Reduce(c, ir::OpKind::kReduceSum, magnitudes));
}

absl::Status LowerReduceLogSum(NodeContext& c) {
  ORRERY_ASSIGN_OR_RETURN(const ir::ValueId sum, Reduce(c, ir::OpKind::kReduceSum, c.input(0)));
  return c.Return(c.Op(ir::OpKind::kLog, {sum}));
}

template <ir::OpKind kind>
absl::Status LowerArg(NodeContext& c) {
  ORRERY_ASSIGN_OR_RETURN(const size_t axis,
                          ir::NormalizeAxis(c.Int("axis", 0), c.input_type(0).dims.size()));
  ir::AttributeSet attributes = {{"axis", static_cast<int64_t>(axis)}};
  if (c.Int("keepdims", 1) != 0) attributes.Set("keepdims", int64_t{1});
  if (c.Int("select_last_index", 0) != 0) attributes.Set("select_last_index", int64_t{1});
  return c.Return(c.Op(kind, {c.input(0)}, attributes));
}

// x over its norm of order p along one dimension.
absl::Status LowerLpNormalization(NodeContext& c) {
  const int64_t order = c.Int("p", 2);
  if (order != 1 && order != 2) {
    return absl::InvalidArgumentError(absl::StrCat("p is ", order, "; wanted 1 or 2"));
  }
  ORRERY_ASSIGN_OR_RETURN(const size_t axis,
                          ir::NormalizeAxis(c.Int("axis", -1), c.input_type(0).dims.size()));
  const ir::AttributeSet along = {{"axes", std::vector<int64_t>{static_cast<int64_t>(axis)}},
                                  {"keepdims", int64_t{1}}};
  const ir::ValueId x = c.input(0);
  ORRERY_ASSIGN_OR_RETURN(const ir::ValueId powers, order == 1 ? c.Op(ir::OpKind::kAbs, {x})
                                                               : c.Op(ir::OpKind::kMul, {x, x}));
  ORRERY_ASSIGN_OR_RETURN(ir::ValueId norm, c.Op(ir::OpKind::kReduceSum, {powers}, along));
  if (order == 2) {
    ORRERY_ASSIGN_OR_RETURN(norm, c.Op(ir::OpKind::kSqrt, {norm}));
  }
  return c.Return(c.Op(ir::OpKind::kDiv, {x, norm}));
}

// (x - mean) / (deviation + 1e-9) over the dimensions `axes`.
absl::Status LowerMeanVarianceNormalization(NodeContext& c) {
  const ir::TensorType type = c.input_type(0);
  ORRERY_ASSIGN_OR_RETURN(const std::vector<int64_t> axes,
                          Normalized(c.Ints("axes", {0, 2, 3}), type.dims.size()));
  const ir::AttributeSet along = {{"axes", axes}, {"keepdims", int64_t{1}}};
  ORRERY_ASSIGN_OR_RETURN(const ir::ValueId mean,
                          c.Op(ir::OpKind::kReduceMean, {c.input(0)}, along));
  ORRERY_ASSIGN_OR_RETURN(const ir::ValueId centred, c.Op(ir::OpKind::kSub, {c.input(0), mean}));
  ORRERY_ASSIGN_OR_RETURN(const ir::ValueId squares, c.Op(ir::OpKind::kMul, {centred, centred}));
  ORRERY_ASSIGN_OR_RETURN(const ir::ValueId variance,
                          c.Op(ir::OpKind::kReduceMean, {squares}, along));
  ORRERY_ASSIGN_OR_RETURN(const ir::ValueId deviation, c.Op(ir::OpKind::kSqrt, {variance}));
  ORRERY_ASSIGN_OR_RETURN(
      const ir::ValueId tiny,
      c.Constant({.dtype = type.dtype, .dims = {}, .sharding = {}}, {{"fill", 1e-9}}));
  ORRERY_ASSIGN_OR_RETURN(const ir::ValueId divisor, c.Op(ir::OpKind::kAdd, {deviation, tiny}));
  return c.Return(c.Op(ir::OpKind::kDiv, {centred, divisor}));
}

}  // namespace
}  // namespace reduce_cc

extern const OnnxOp kReduceSumOnnxOp = {.type = "ReduceSum",
                                        .lower = reduce_cc::LowerReduce<ir::OpKind::kReduceSum>};
extern const OnnxOp kReduceMeanOnnxOp = {.type = "ReduceMean",
                                         .lower = reduce_cc::LowerReduce<ir::OpKind::kReduceMean>};
extern const OnnxOp kReduceMaxOnnxOp = {.type = "ReduceMax",
                                        .lower = reduce_cc::LowerReduce<ir::OpKind::kReduceMax>};
extern const OnnxOp kReduceMinOnnxOp = {.type = "ReduceMin",
                                        .lower = reduce_cc::LowerReduce<ir::OpKind::kReduceMin>};
extern const OnnxOp kReduceProdOnnxOp = {.type = "ReduceProd",
                                         .lower = reduce_cc::LowerReduce<ir::OpKind::kReduceProd>};
extern const OnnxOp kReduceLogSumExpOnnxOp = {
    .type = "ReduceLogSumExp", .lower = reduce_cc::LowerReduce<ir::OpKind::kReduceLogSumExp>};
extern const OnnxOp kReduceL1OnnxOp = {.type = "ReduceL1", .lower = reduce_cc::LowerReduceL1};
extern const OnnxOp kReduceL2OnnxOp = {.type = "ReduceL2", .lower = reduce_cc::LowerReduceL2};
extern const OnnxOp kReduceLogSumOnnxOp = {.type = "ReduceLogSum",
                                           .lower = reduce_cc::LowerReduceLogSum};
extern const OnnxOp kReduceSumSquareOnnxOp = {.type = "ReduceSumSquare",
                                              .lower = reduce_cc::LowerReduceSumSquare};

extern const OnnxOp kMicrosoftReduceSumTrainingOnnxOp = {
    .type = "ReduceSumTraining",
    .domain = kMicrosoft,
    .inputs = 2,
    .lower = reduce_cc::LowerReduce<ir::OpKind::kReduceSum>};

extern const OnnxOp kArgMaxOnnxOp = {.type = "ArgMax",
                                     .lower = reduce_cc::LowerArg<ir::OpKind::kArgMax>};
extern const OnnxOp kArgMinOnnxOp = {.type = "ArgMin",
                                     .lower = reduce_cc::LowerArg<ir::OpKind::kArgMin>};

extern const OnnxOp kLpNormalizationOnnxOp = {.type = "LpNormalization",
                                              .lower = reduce_cc::LowerLpNormalization};

// Before opset 9 the attribute `across_channels` said which dimensions.
extern const OnnxOp kMeanVarianceNormalizationOnnxOp = {
    .type = "MeanVarianceNormalization",
    .since_opset = 9,
    .lower = reduce_cc::LowerMeanVarianceNormalization};

}  // namespace orrery::importer
