#include "transforms/redistribution/emit.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "ir/op_kind.h"
#include "support/check.h"
#include "support/status.h"

namespace orrery::transforms::redistribution {
namespace emit_cc {
namespace {

ir::AttributeSet AttributesOf(const Step& step, size_t rank, const ir::Mesh& mesh) {
  ir::AttributeSet attributes = {{"axes", mesh.Names(step.axes)}};
  const auto from = static_cast<int64_t>(step.from), to = static_cast<int64_t>(step.to);
  switch (step.kind) {
    case MoveKind::kAllGather:
      attributes.Set("dim", from);
      break;
    case MoveKind::kSlice:
    case MoveKind::kReduceScatter:
      attributes.Set("dim", to);
      break;
    case MoveKind::kAllToAll:
      attributes.Set("from", from);
      attributes.Set("to", to);
      break;
    case MoveKind::kPermute: {
      std::string lists;
      for (size_t d = 0; d < rank; ++d) {
        absl::StrAppend(&lists, d > 0 ? ";" : "", mesh.Names(step.after.axes(static_cast<int>(d))));
      }
      attributes.Set("to", lists);
      break;
    }
    default:
      break;
  }
  return attributes;
}

}  // namespace
}  // namespace emit_cc

std::optional<ir::OpKind> OpOf(MoveKind kind) {
  switch (kind) {
    case MoveKind::kSlice:
      return ir::OpKind::kAllSlice;
    case MoveKind::kAllGather:
      return ir::OpKind::kAllGather;
    case MoveKind::kReduceScatter:
      return ir::OpKind::kReduceScatter;
    case MoveKind::kAllReduce:
      return ir::OpKind::kAllReduce;
    case MoveKind::kAllToAll:
      return ir::OpKind::kAllToAll;
    case MoveKind::kPermute:
      return ir::OpKind::kPermute;
    case MoveKind::kReblock:
    case MoveKind::kLocalCopy:
    case MoveKind::kMakePartial:
      return std::nullopt;
  }
  return std::nullopt;
}

std::optional<MoveKind> StepOf(ir::OpKind op) {
  // Each rank sends its part to one other, in a circle.
  if (op == ir::OpKind::kRotate) return MoveKind::kPermute;
  for (const MoveKind kind : {MoveKind::kSlice, MoveKind::kAllGather, MoveKind::kReduceScatter,
                              MoveKind::kAllReduce, MoveKind::kAllToAll, MoveKind::kPermute}) {
    if (OpOf(kind) == op) return kind;
  }
  return std::nullopt;
}

ir::ValueId EmitStep(const Step& step, ir::ValueId value, absl::string_view name,
                     ir::Builder& builder) {
  const std::optional<ir::OpKind> op = OpOf(step.kind);
  ORRERY_CHECK(op.has_value()) << ToString(step.kind);
  const size_t rank = builder.type(value).dims.size();
  return builder.Op(*op, {value}, name,
                    emit_cc::AttributesOf(step, rank, builder.function().mesh()));
}

absl::StatusOr<ir::ValueId> Emit(const RedistributionPlan& plan, ir::ValueId value,
                                 absl::string_view name, ir::Builder& builder) {
  const ir::Mesh& mesh = builder.function().mesh();
  for (const PlannedStep& planned : plan.steps) {
    const Step& step = planned.step;
    const size_t rank = builder.type(value).dims.size();
    if (!OpOf(step.kind).has_value() || !step.after.Unpack(rank).blocks.empty()) {
      return absl::UnimplementedError(
          absl::StrCat("a step of a redistribution is a ", ToString(step.kind), " to ",
                       ir::ToString({.dtype = builder.type(value).dtype,
                                     .dims = builder.type(value).dims,
                                     .sharding = step.after.Unpack(rank)},
                                    mesh),
                       "; wanted one that an op can carry out"));
    }
    const bool last = &planned == &plan.steps.back();
    value = EmitStep(step, value, last ? name : "", builder);
    if (!builder.status().ok()) return builder.status();
  }
  return value;
}

}  // namespace orrery::transforms::redistribution
