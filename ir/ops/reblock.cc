#include "absl/strings/str_cat.h"
#include "ir/op_info.h"
#include "ir/ops/exchange.h"
#include "support/status.h"

// Other blocks of a dimension: each rank sends each other what falls to it, as ScaLAPACK's
// redistribution of block-cyclic matrices does (Prylli & Tourancheau 1997).

namespace orrery::ir {
namespace reblock_cc {
namespace {

absl::Status Shard(const OpTypes& op, TypeList& results) {
  ORRERY_ASSIGN_OR_RETURN(const AxisList group, AxesOfOp(op));
  ORRERY_ASSIGN_OR_RETURN(const size_t dim, DimOfOp(op, "dim"));
  TensorType& type = results[0];
  const AxisList before = type.sharding.at(dim);
  AxisList after;
  const AttributeSet names = {{"axes", op.attributes.String("to", op.mesh.Names(before))}};
  ORRERY_RETURN_IF_ERROR(ParseAxes(names, op.mesh, after));
  if (before.Sorted() != group.Sorted() || after.Sorted() != group.Sorted()) {
    return absl::InvalidArgumentError(
        absl::StrCat("dimension ", dim, " is split over ", op.mesh.Names(before), " and then over ",
                     op.mesh.Names(after), "; wanted both over axes=\"", op.mesh.Names(group),
                     "\", in any order"));
  }
  const int64_t block = op.attributes.Int("block", kNestedChunks);
  if (block < kBalancedChunks) {
    return absl::InvalidArgumentError(absl::StrCat(
        "block=", block, "; wanted a size, 0 for nested chunks or -1 for balanced ones"));
  }
  type.sharding.Set(dim, type.dims.size(), after, block);
  return absl::OkStatus();
}

}  // namespace
}  // namespace reblock_cc

extern const OpInfo kReblockOp = {
    .name = "Reblock",
    .summary =
        "dimension `dim`, split over `axes`, in blocks of `block` (0: nested chunks), its parts in "
        "the order of the axes `to`",
    .op_class = OpClass::kCollective,
    .operands = 1,
    .infer = InferSameAsOperand,
    .infer_sharding = reblock_cc::Shard,
    .exchange = FetchHeld,
};

}  // namespace orrery::ir
