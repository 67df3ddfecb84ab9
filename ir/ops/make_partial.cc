#include "absl/strings/str_cat.h"
#include "ir/op_info.h"
#include "ir/ops/exchange.h"
#include "ir/sharding_text.h"
#include "ir/tensor_parts.h"
#include "support/status.h"

// Replicas become what is to be reduced (DTensor's Replicate to Partial): of a sum the first rank
// keeps its replica and the others have zeros, so that the sum is the value to the last bit.
// DTensor divides by the number of ranks, with as much memory read and written.

namespace orrery::ir {
namespace make_partial_cc {
namespace {

absl::StatusOr<Reduction> ReductionOf(const AttributeSet& attributes) {
  const std::string name = attributes.String("reduction", "sum");
  const std::optional<Reduction> reduction = ParseReduction(name);
  if (reduction.has_value()) return *reduction;
  return absl::InvalidArgumentError(absl::StrCat("reduction=\"", name, "\" is none"));
}

// Of averages and extremes each rank keeps what it has.
bool Rewrites(Reduction reduction) {
  return reduction == Reduction::kSum || reduction == Reduction::kProduct;
}

int64_t CountBytes(const OpTypes& op, const TypeList& results) {
  const absl::StatusOr<Reduction> reduction = ReductionOf(op.attributes);
  const bool moves = reduction.ok() && Rewrites(*reduction);
  return moves ? (SizeOf(*op.operands[0]) + SizeOf(results[0])).count() : 0;
}

absl::Status Shard(const OpTypes& op, TypeList& results) {
  ORRERY_ASSIGN_OR_RETURN(const AxisList axes, AxesOfOp(op));
  ORRERY_ASSIGN_OR_RETURN(const Reduction reduction, ReductionOf(op.attributes));
  Sharding& sharding = results[0].sharding;
  for (const AxisIndex axis : axes.axes()) {
    if (sharding.Uses(axis)) {
      return absl::InvalidArgumentError(absl::StrCat(
          "its operand is sharded over ", op.mesh.axes()[axis].name, "; wanted replicas along it"));
    }
    sharding.partial.push_back(axis);
    sharding.reductions[axis] = reduction;
  }
  sharding.partial = sharding.partial.Sorted();
  return absl::OkStatus();
}

// No rank hears of another: what it does depends on which of its group it is.
Tensor Exchange(const GroupExchange& exchange) {
  const Tensor& part = *exchange.parts[static_cast<size_t>(exchange.position)];
  const absl::StatusOr<Reduction> reduction = ReductionOf(exchange.attributes);
  return exchange.position == 0 || !reduction.ok() ? part : Neutral(part, *reduction);
}

}  // namespace
}  // namespace make_partial_cc

extern const OpInfo kMakePartialOp = {
    .name = "MakePartial",
    .summary = "x, whose replicas along `axes` become summands, or what else `reduction` reduces",
    .operands = 1,
    .infer = InferSameAsOperand,
    .bytes = make_partial_cc::CountBytes,
    .infer_sharding = make_partial_cc::Shard,
    .exchange = make_partial_cc::Exchange,
    .linear = true,
};

}  // namespace orrery::ir
