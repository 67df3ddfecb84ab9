#include <algorithm>

#include "ir/op_info.h"
#include "ir/op_kind.h"
#include "ir/ops/kernels.h"

// A cache of keys or values with the rows of the next positions appended, in one kernel.

namespace orrery::ir {
namespace append_rows_cc {
namespace {

absl::Status InferAppendRows(const OpTypes& op, TypeList& results) {
  const TensorType &past = *op.operands[0], &x = *op.operands[1];
  const bool fits = past.dims.size() == 4 && x.dims.size() == 3 && past.dtype == x.dtype &&
                    past.dims[0] == x.dims[0] && past.dims[1] * past.dims[3] == x.dims[2];
  if (!fits) {
    return absl::InvalidArgumentError(
        absl::StrCat("cannot append ", ToString(x, op.mesh), " to ", ToString(past, op.mesh),
                     "; wanted [batch,rows,heads width] and [batch,heads,rows,width]"));
  }
  Dims dims = past.dims;
  dims[2] += x.dims[1];
  results.push_back({.dtype = past.dtype, .dims = std::move(dims), .sharding = {}});
  return absl::OkStatus();
}

// Batch and heads.
ShardingRule AppendRowsSharding(const OpTypes&, const TypeList&) {
  const ShardingRule::Factors heads = {0, 1, kNoFactor, kNoFactor};
  return {.operands = {heads, {0, kNoFactor, 1}}, .results = {heads}};
}

absl::Status EvaluateAppendRows(Evaluation& e) {
  const Tensor &past = e.operand(0), &x = e.operand(1);
  const int64_t heads = past.dims()[1], old = past.dims()[2], width = past.dims()[3];
  const int64_t rows = x.dims()[1];
  for (Odometer at(e.results[0].dims(), {}); !at.done(); at.Next()) {
    const int64_t b = at.at()[0], h = at.at()[1], row = at.at()[2], i = at.at()[3];
    if (row < old) {
      e.results[0].CopyElement(at.index(), past, ((b * heads + h) * old + row) * width + i);
    } else {
      e.results[0].CopyElement(at.index(), x, ((b * rows + row - old) * heads + h) * width + i);
    }
  }
  return absl::OkStatus();
}

AttributeSet RowsFrom(int64_t start, int64_t end) {
  return {{"axes", std::vector<int64_t>{2}},
          {"starts", std::vector<int64_t>{start}},
          {"ends", std::vector<int64_t>{end}},
          {"steps", std::vector<int64_t>{1}}};
}

absl::Status AppendRowsGradient(GradientContext& c) {
  Builder& b = c.builder();
  const ValueId dy = c.result_gradient();
  const int64_t old = c.operand_type(0).dims[2];
  const Dims x = c.operand_type(1).dims;
  if (c.needs(0)) {
    c.SetOperandGradient(0, b.Op(OpKind::kSlice, {dy}, c.GradientName(0), RowsFrom(0, old)));
  }
  if (!c.needs(1)) return b.status();
  const ValueId part = b.Op(OpKind::kSlice, {dy}, "", RowsFrom(old, old + x[1]));
  if (!part.valid()) return b.status();
  const ValueId rows =
      b.Op(OpKind::kTranspose, {part}, "", {{"perm", std::vector<int64_t>{0, 2, 1, 3}}});
  if (!rows.valid()) return b.status();
  c.SetOperandGradient(1, b.Op(OpKind::kReshape, {rows}, c.GradientName(1),
                               {{"shape", std::vector<int64_t>{-1, x[1], x[2]}}}));
  return b.status();
}

}  // namespace
}  // namespace append_rows_cc

extern const OpInfo kAppendRowsOp = {
    .name = "AppendRows",
    .summary = "past [batch,heads,rows,width] with the rows of x [batch,more,heads width] appended",
    .operands = 2,
    .infer = append_rows_cc::InferAppendRows,
    .sharding = append_rows_cc::AppendRowsSharding,
    .evaluate = append_rows_cc::EvaluateAppendRows,
    .gradient = append_rows_cc::AppendRowsGradient,
    .linear = true,
};

}  // namespace orrery::ir
