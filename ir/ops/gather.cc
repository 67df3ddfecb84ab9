#include "ir/op_info.h"
#include "ir/op_kind.h"
#include "ir/ops/movement.h"

// Gather: rows of a table. Its gradient is dense, as that of an embedding usually is. Where the
// table is split by rows, as Megatron splits an embedding over the vocabulary (Shoeybi et al.
// 2019), each rank contributes the rows that it holds, and zeros for the others.

namespace orrery::ir {
namespace gather_cc {
namespace {

size_t AxisOf(const AttributeSet& attributes) {
  return static_cast<size_t>(attributes.Int("axis", 0));
}

absl::Status InferGather(const OpTypes& op, TypeList& results) {
  const TensorType &table = *op.operands[0], &ids = *op.operands[1];
  ORRERY_RETURN_IF_ERROR(CheckAxis(op.attributes, table.dims.size()));
  ORRERY_RETURN_IF_ERROR(CheckIndices(ids));
  Dims dims;
  for (size_t d = 0; d < table.dims.size(); ++d) {
    if (d == AxisOf(op.attributes)) {
      dims.insert(dims.end(), ids.dims.begin(), ids.dims.end());
    } else {
      dims.push_back(table.dims[d]);
    }
  }
  return AddResult(op, std::move(dims), results);
}

struct GatherFactors {
  ShardingRule::Factors table, ids, rows;
};

// Where the table has the dimension `axis`, the rows have those of the indices. The axis has the
// last factor, of its own.
GatherFactors FactorsOf(size_t axis, size_t table_rank, size_t ids_rank) {
  GatherFactors factors;
  int8_t next = 0;
  for (size_t d = 0; d < table_rank; ++d) {
    if (d != axis) {
      factors.table.push_back(next);
      factors.rows.push_back(next++);
      continue;
    }
    factors.table.push_back(static_cast<int8_t>(table_rank - 1 + ids_rank));
    for (size_t i = 0; i < ids_rank; ++i) {
      factors.ids.push_back(next);
      factors.rows.push_back(next++);
    }
  }
  return factors;
}

ShardingRule GatherRule(const OpTypes& op, const TypeList&) {
  const size_t axis = AxisOf(op.attributes);
  GatherFactors factors = FactorsOf(axis, op.operands[0]->dims.size(), op.operands[1]->dims.size());
  // Bools have no sum.
  if (op.operands[0]->dtype == DType::kBool) factors.table[axis] = kNoFactor;
  return {.operands = {factors.table, factors.ids}, .results = {factors.rows}};
}

// Calls use(position in the table, position among the rows) for each element of the rows that the
// part `table` of the whole table has.
template <typename Use>
absl::Status ForEachRowElement(const Dims& table, size_t axis, const HeldPositions& held,
                               const Tensor& ids, Use use) {
  const AroundDim around = SplitAround(table, axis);
  for (int64_t o = 0; o < around.outer; ++o) {
    for (int64_t i = 0; i < ids.size(); ++i) {
      ORRERY_ASSIGN_OR_RETURN(const int64_t row, HeldIndexAt(ids, i, held));
      if (row < 0 || row >= around.size) continue;
      for (int64_t n = 0; n < around.inner; ++n) {
        use((o * around.size + row) * around.inner + n, (o * ids.size() + i) * around.inner + n);
      }
    }
  }
  return absl::OkStatus();
}

absl::Status EvaluateGather(Evaluation& e) {
  const size_t axis = AxisOf(e.attributes);
  return ForEachRowElement(
      e.operand(0).dims(), axis,
      {.first = e.OperandFirst(0, axis), .whole = e.OperandWhole(0, axis)}, e.operand(1),
      [&](int64_t from, int64_t to) { e.results[0].CopyElement(to, e.operand(0), from); });
}

absl::Status GatherGradient(GradientContext& c) {
  const int64_t axis = c.attributes().Int("axis", 0);
  const int64_t size = c.operand_type(0).dims[static_cast<size_t>(axis)];
  c.SetOperandGradient(0, c.builder().Op(OpKind::kGatherGrad, {c.operand(1), c.result_gradient()},
                                         c.GradientName(0), {{"axis", axis}, {"size", size}}));
  return c.builder().status();
}

absl::Status InferGatherGrad(const OpTypes& op, TypeList& results) {
  const TensorType &ids = *op.operands[0], &dy = *op.operands[1];
  const int64_t size = op.attributes.Int("size", 0);
  const size_t axis = AxisOf(op.attributes);
  ORRERY_RETURN_IF_ERROR(CheckIndices(ids));
  const auto misfit = [&] {
    return absl::InvalidArgumentError(
        absl::StrCat("got indices ", Show(ids.dims), ", rows ", Show(dy.dims), ", axis ",
                     op.attributes.Int("axis", 0), " and size ", size,
                     "; wanted rows that have the indices' dimensions from the axis on"));
  };
  if (op.attributes.Int("axis", 0) < 0 || axis + ids.dims.size() > dy.dims.size() || size < 0) {
    return misfit();
  }
  const auto begin = dy.dims.begin() + op.attributes.Int("axis", 0);
  const auto end = begin + static_cast<int64_t>(ids.dims.size());
  if (Dims(begin, end) != ids.dims) return misfit();
  Dims dims(dy.dims.begin(), begin);
  dims.push_back(size);
  dims.insert(dims.end(), end, dy.dims.end());
  return AddResult(op, std::move(dims), results, 1);
}

ShardingRule GatherGradRule(const OpTypes& op, const TypeList& results) {
  const size_t axis = AxisOf(op.attributes);
  const GatherFactors factors =
      FactorsOf(axis, results[0].dims.size(), op.operands[0]->dims.size());
  return {.operands = {factors.ids, factors.rows},
          .results = {factors.table},
          .made = factors.table[axis]};
}

absl::Status EvaluateGatherGrad(Evaluation& e) {
  const size_t axis = AxisOf(e.attributes);
  return ForEachRowElement(
      e.results[0].dims(), axis, {.first = e.ResultFirst(0, axis), .whole = e.ResultWhole(0, axis)},
      e.operand(0),
      [&](int64_t to, int64_t from) { AddElement(e.results[0], to, e.operand(1), from); });
}

// Each row of dy has gone to one position of the table.
absl::Status GatherGradGradient(GradientContext& c) {
  c.SetOperandGradient(
      1, c.builder().Op(OpKind::kGather, {c.result_gradient(), c.operand(0)}, c.GradientName(1),
                        {{"axis", c.attributes().Int("axis", 0)}}));
  return c.builder().status();
}

}  // namespace
}  // namespace gather_cc

extern const OpInfo kGatherOp = {
    .name = "Gather",
    .summary =
        "the rows of table [..,v,..] that the indices [i..] name along dimension `axis`: "
        "[..,i..,..]",
    .operands = 2,
    .infer = gather_cc::InferGather,
    .bytes = GatheredBytes,
    .sharding = gather_cc::GatherRule,
    .evaluate = gather_cc::EvaluateGather,
    .gradient = gather_cc::GatherGradient,
    .no_gradient = 0b10,
};

extern const OpInfo kGatherGradOp = {
    .name = "GatherGrad",
    .summary =
        "gradient of a table from the indices and the gradient of the rows: zeros [..,size,..] "
        "to which each row is added; the axes `split` split them by rows",
    .operands = 2,
    .infer = gather_cc::InferGatherGrad,
    .flops = OneFlopALastElement,
    .sharding = gather_cc::GatherGradRule,
    .evaluate = gather_cc::EvaluateGatherGrad,
    .gradient = gather_cc::GatherGradGradient,
    .no_gradient = 0b1,
    .linear_in = 0b10,
};

}  // namespace orrery::ir
