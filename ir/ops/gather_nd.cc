#include "ir/op_info.h"
#include "ir/op_kind.h"
#include "ir/ops/reduction.h"

// Ops that take or write a slice for each tuple of indices: the last dimension of the indices is
// the tuple, which names a position along as many dimensions of x.

namespace orrery::ir {
namespace gather_nd_cc {
namespace {

// x is [batch.., indexed.., rest..], the indices are [batch.., tuples.., k], slices are
// [batch.., tuples.., rest..].
struct Positions {
  size_t batch = 0, indexed = 0;
};

absl::Status CheckPositions(const OpTypes& op, const TensorType& x, const TensorType& ids) {
  ORRERY_RETURN_IF_ERROR(CheckIndices(ids));
  const int64_t batch = op.attributes.Int("batch_dims", 0);
  const auto rank = static_cast<int64_t>(x.dims.size());
  const auto ids_rank = static_cast<int64_t>(ids.dims.size());
  bool fits = batch >= 0 && batch < ids_rank && ids.dims.back() <= rank - batch;
  for (size_t d = 0; fits && d < static_cast<size_t>(batch); ++d) fits = ids.dims[d] == x.dims[d];
  if (fits) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("got shapes ", Show(x.dims), " and ", Show(ids.dims), " with batch_dims=", batch,
                   "; wanted indices [batch..,tuples..,k] into k dimensions after the batch"));
}

Positions PositionsOf(const AttributeSet& attributes, const Dims& ids) {
  return {.batch = static_cast<size_t>(attributes.Int("batch_dims", 0)),
          .indexed = static_cast<size_t>(ids.back())};
}

Dims SliceDims(const Dims& x, const Dims& ids, Positions positions) {
  Dims dims(ids.begin(), ids.end() - 1);
  dims.insert(dims.end(), x.begin() + static_cast<int64_t>(positions.batch + positions.indexed),
              x.end());
  return dims;
}

// Calls use(position in a tensor of dims `x`, position among the slices).
template <typename Use>
absl::Status ForEachSliceElement(const Dims& x, const Tensor& ids, Positions positions, Use use) {
  const Dims strides = StridesOf(x);
  const auto k = static_cast<int64_t>(positions.indexed);
  int64_t batches = 1, run = 1, tuples = 1;
  for (size_t d = 0; d < positions.batch; ++d) batches *= x[d];
  for (size_t d = positions.batch + positions.indexed; d < x.size(); ++d) run *= x[d];
  for (size_t d = 0; d + 1 < ids.dims().size(); ++d) tuples *= ids.dims()[d];
  if (tuples == 0 || run == 0) return absl::OkStatus();
  const int64_t batch_size = ElementCount(x) / batches;
  for (int64_t t = 0; t < tuples; ++t) {
    int64_t begin = t / (tuples / batches) * batch_size;
    for (int64_t i = 0; i < k; ++i) {
      const size_t dim = positions.batch + static_cast<size_t>(i);
      ORRERY_ASSIGN_OR_RETURN(const int64_t index, IndexAt(ids, t * k + i, x[dim]));
      begin += index * strides[dim];
    }
    for (int64_t n = 0; n < run; ++n) use(begin + n, t * run + n);
  }
  return absl::OkStatus();
}

// The rows of a rule: of x, of the indices and of the slices. What a tuple names is whole.
struct Rows {
  ShardingRule::Factors x, ids, slices;
};

Rows RowsOf(size_t x_rank, const Dims& ids, Positions positions) {
  Rows rows;
  int8_t next = 0;
  for (size_t d = 0; d + 1 < ids.size(); ++d) {
    if (d < positions.batch) rows.x.push_back(next);
    rows.ids.push_back(next);
    rows.slices.push_back(next++);
  }
  rows.ids.push_back(kNoFactor);
  for (size_t d = 0; d < positions.indexed; ++d) rows.x.push_back(kNoFactor);
  for (size_t d = positions.batch + positions.indexed; d < x_rank; ++d) {
    rows.x.push_back(next);
    rows.slices.push_back(next++);
  }
  return rows;
}

absl::Status InferGatherND(const OpTypes& op, TypeList& results) {
  const TensorType &x = *op.operands[0], &ids = *op.operands[1];
  ORRERY_RETURN_IF_ERROR(CheckPositions(op, x, ids));
  return AddResult(op, SliceDims(x.dims, ids.dims, PositionsOf(op.attributes, ids.dims)), results);
}

ShardingRule GatherNDRule(const OpTypes& op, const TypeList&) {
  const Dims& ids = op.operands[1]->dims;
  const Rows rows = RowsOf(op.operands[0]->dims.size(), ids, PositionsOf(op.attributes, ids));
  return {.operands = {rows.x, rows.ids}, .results = {rows.slices}};
}

absl::Status EvaluateGatherND(Evaluation& e) {
  return ForEachSliceElement(
      e.operand(0).dims(), e.operand(1), PositionsOf(e.attributes, e.operand(1).dims()),
      [&](int64_t from, int64_t to) { e.results[0].CopyElement(to, e.operand(0), from); });
}

absl::Status GatherNDGradient(GradientContext& c) {
  const Dims x = c.operand_type(0).dims;
  const Positions positions = PositionsOf(c.attributes(), c.operand_type(1).dims);
  const auto first = x.begin() + static_cast<int64_t>(positions.batch);
  const std::vector<int64_t> sizes(first, first + static_cast<int64_t>(positions.indexed));
  c.SetOperandGradient(
      0,
      c.builder().Op(OpKind::kGatherNDGrad, {c.operand(1), c.result_gradient()}, c.GradientName(0),
                     {{"batch_dims", static_cast<int64_t>(positions.batch)}, {"sizes", sizes}}));
  return c.builder().status();
}

absl::Status InferGatherNDGrad(const OpTypes& op, TypeList& results) {
  const TensorType &ids = *op.operands[0], &dy = *op.operands[1];
  const std::vector<int64_t> sizes = op.attributes.Ints("sizes");
  const int64_t batch = op.attributes.Int("batch_dims", 0);
  const auto ids_rank = static_cast<int64_t>(ids.dims.size());
  ORRERY_RETURN_IF_ERROR(CheckIndices(ids));
  if (batch < 0 || batch >= ids_rank || ids.dims.back() != static_cast<int64_t>(sizes.size()) ||
      dy.dims.size() + 1 < ids.dims.size() ||
      Dims(dy.dims.begin(), dy.dims.begin() + ids_rank - 1) !=
          Dims(ids.dims.begin(), ids.dims.end() - 1)) {
    return absl::InvalidArgumentError(
        absl::StrCat("got indices ", Show(ids.dims), ", slices ", Show(dy.dims), ", sizes=[",
                     absl::StrJoin(sizes, ","), "] and batch_dims=", batch,
                     "; wanted a slice for each tuple, and a size for each of its indices"));
  }
  Dims dims(ids.dims.begin(), ids.dims.begin() + batch);
  dims.insert(dims.end(), sizes.begin(), sizes.end());
  dims.insert(dims.end(), dy.dims.begin() + ids_rank - 1, dy.dims.end());
  return AddResult(op, std::move(dims), results, 1);
}

ShardingRule GatherNDGradRule(const OpTypes& op, const TypeList& results) {
  const Dims& ids = op.operands[0]->dims;
  const Rows rows = RowsOf(results[0].dims.size(), ids, PositionsOf(op.attributes, ids));
  return {.operands = {rows.ids, rows.slices}, .results = {rows.x}};
}

absl::Status EvaluateGatherNDGrad(Evaluation& e) {
  return ForEachSliceElement(
      e.results[0].dims(), e.operand(0), PositionsOf(e.attributes, e.operand(0).dims()),
      [&](int64_t to, int64_t from) { AddElement(e.results[0], to, e.operand(1), from); });
}

absl::Status InferScatterND(const OpTypes& op, TypeList& results) {
  const TensorType &x = *op.operands[0], &ids = *op.operands[1];
  ORRERY_RETURN_IF_ERROR(CheckPositions(op, x, ids));
  const Dims slices = SliceDims(x.dims, ids.dims, PositionsOf(op.attributes, ids.dims));
  ORRERY_RETURN_IF_ERROR(CheckScatter(op, slices));
  return InferUnary(op, results);
}

// Each rank must know all that is written into what it holds: tuples are whole.
ShardingRule ScatterNDRule(const OpTypes& op, const TypeList&) {
  const Dims& ids = op.operands[1]->dims;
  const Positions positions = PositionsOf(op.attributes, ids);
  Rows rows = RowsOf(op.operands[0]->dims.size(), ids, positions);
  for (size_t d = positions.batch; d + 1 < ids.size(); ++d)
    rows.ids[d] = rows.slices[d] = kNoFactor;
  ShardingRule rule{.operands = {rows.x, rows.ids}, .results = {rows.x}};
  if (op.operands.size() == 3) rule.operands.push_back(rows.slices);
  return rule;
}

absl::Status EvaluateScatterND(Evaluation& e) {
  const std::string reduction = e.attributes.String("reduction", "none");
  const double value = e.attributes.Number("value", 0);
  const Positions positions = PositionsOf(e.attributes, e.operand(1).dims());
  Tensor& y = e.results[0];
  y = e.operand(0);
  return ForEachSliceElement(y.dims(), e.operand(1), positions, [&](int64_t to, int64_t from) {
    if (e.has_operand(2)) {
      Update(y, to, e.operand(2), from, reduction);
    } else {
      y.SetNumber(to, value);
    }
  });
}

absl::Status ScatterNDGradient(GradientContext& c) {
  AttributeSet positions;
  if (const int64_t batch = c.attributes().Int("batch_dims", 0); batch != 0) {
    positions.Set("batch_dims", batch);
  }
  return ScatterGradient(c, OpKind::kScatterND, OpKind::kGatherND, positions);
}

}  // namespace
}  // namespace gather_nd_cc

extern const OpInfo kGatherNDOp = {
    .name = "GatherND",
    .summary =
        "for each tuple of indices [batch..,tuples..,k] the slice of x [batch..,i..,rest..] "
        "that it names along k dimensions: [batch..,tuples..,rest..]",
    .operands = 2,
    .infer = gather_nd_cc::InferGatherND,
    .bytes = GatheredBytes,
    .sharding = gather_nd_cc::GatherNDRule,
    .evaluate = gather_nd_cc::EvaluateGatherND,
    .gradient = gather_nd_cc::GatherNDGradient,
    .no_gradient = 0b10,
};

extern const OpInfo kGatherNDGradOp = {
    .name = "GatherNDGrad",
    .summary =
        "gradient of x from the indices and the gradient of the slices: zeros "
        "[batch..,sizes..,rest..] to which each slice is added",
    .operands = 2,
    .infer = gather_nd_cc::InferGatherNDGrad,
    .flops = OneFlopALastElement,
    .sharding = gather_nd_cc::GatherNDGradRule,
    .evaluate = gather_nd_cc::EvaluateGatherNDGrad,
};

extern const OpInfo kScatterNDOp = {
    .name = "ScatterND",
    .summary =
        "x [batch..,i..,rest..], but the slice that each tuple of indices [batch..,tuples..,k] "
        "names is the update (or `value`); `reduction` none, add, mul, max or min",
    .operands = 3,
    .optional = 1,
    .infer = gather_nd_cc::InferScatterND,
    .flops = ScatterFlops,
    .sharding = gather_nd_cc::ScatterNDRule,
    .evaluate = gather_nd_cc::EvaluateScatterND,
    .gradient = gather_nd_cc::ScatterNDGradient,
    .no_gradient = 0b10,
};

}  // namespace orrery::ir
