#include "ir/op_info.h"
#include "ir/ops/movement.h"

// Keys and values where a sequence is cut into slices that run one after the other (TeraPipe, Li et
// al. 2021). A rank keeps the rows of each slice from its forward to its backward. A slice meets
// them behind those of all earlier slices; and hands back gradients of all of these, which the rank
// sums up until the backward of the slice that they belong to.
//
// Both are of one slice and work with what other slices leave, as Collect does: no kernel can be
// evaluated alone.

namespace orrery::ir {
namespace extend_rows_cc {
namespace {

absl::Status CheckSlice(const OpTypes& op) {
  const int64_t rank = static_cast<int64_t>(op.operands[0]->dims.size());
  const int64_t dim = op.attributes.Int("dim", 1);
  const int64_t earlier = op.attributes.Int("earlier", 0), later = op.attributes.Int("later", 0);
  if (dim >= 0 && dim < rank && earlier >= 0 && later >= 0) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("dim=", dim, ", earlier=", earlier, " and later=", later, " of an operand of ",
                   rank, " dimensions; wanted one of these, and no fewer rows than none"));
}

absl::Status InferExtendRows(const OpTypes& op, TypeList& results) {
  if (absl::Status status = CheckSlice(op); !status.ok()) return status;
  Dims dims = op.operands[0]->dims;
  int64_t& rows = dims[static_cast<size_t>(op.attributes.Int("dim", 1))];
  rows = SizeSum(rows, op.attributes.Int("earlier", 0));
  return AddResult(op, std::move(dims), results);
}

absl::Status InferExtendRowsGrad(const OpTypes& op, TypeList& results) {
  if (absl::Status status = CheckSlice(op); !status.ok()) return status;
  Dims dims = op.operands[0]->dims;
  int64_t& rows = dims[static_cast<size_t>(op.attributes.Int("dim", 1))];
  const int64_t earlier = op.attributes.Int("earlier", 0);
  if (earlier > rows) {
    return absl::InvalidArgumentError(absl::StrCat(Show(op.operands[0]->dims), " has ", rows,
                                                   " rows; wanted the earlier=", earlier,
                                                   " among them"));
  }
  rows -= earlier;
  return AddResult(op, std::move(dims), results);
}

// Only the rows of attention stay whole.
ShardingRule ExtendRowsSharding(const OpTypes& op, const TypeList& results) {
  return SplitOtherDims(op, results, {op.attributes.Int("dim", 1)});
}

// One addition an element, where later slices have left something to add to.
double ExtendRowsGradFlops(const OpTypes& op, const TypeList&) {
  if (op.attributes.Int("later", 0) == 0) return 0;
  return static_cast<double>(ElementCount(op.operands[0]->dims));
}

// Reads all rows, and the sums so far; writes the sums of earlier slices and its own.
int64_t ExtendRowsGradBytes(const OpTypes& op, const TypeList&) {
  const int64_t all = SizeOf(*op.operands[0]).count();
  return op.attributes.Int("later", 0) == 0 ? 2 * all : 3 * all;
}

}  // namespace
}  // namespace extend_rows_cc

extern const OpInfo kExtendRowsOp = {
    .name = "ExtendRows",
    .summary =
        "rows x [b,rows,..] of a slice of a sequence behind those of the slices before it, "
        "which the rank has kept: [b,earlier + rows,..]; rows are dimension `dim`",
    .op_class = OpClass::kView,
    .operands = 1,
    .infer = extend_rows_cc::InferExtendRows,
    .sharding = extend_rows_cc::ExtendRowsSharding,
    .strided_view = true,
    .linear = true,
};

extern const OpInfo kExtendRowsGradOp = {
    .name = "ExtendRowsGrad",
    .summary =
        "of the gradient dy [b,earlier + rows,..] of ExtendRows the last rows, with what the "
        "`later` rows of later slices have summed up for them; the rank sums up the others for "
        "earlier slices",
    .operands = 1,
    .infer = extend_rows_cc::InferExtendRowsGrad,
    .flops = extend_rows_cc::ExtendRowsGradFlops,
    .bytes = extend_rows_cc::ExtendRowsGradBytes,
    .sharding = extend_rows_cc::ExtendRowsSharding,
    .linear = true,
};

}  // namespace orrery::ir
