#include "transforms/redistribution/emit.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "ir/op_kind.h"
#include "ir/sharding_text.h"
#include "support/check.h"
#include "support/status.h"

namespace orrery::transforms::redistribution {
namespace emit_cc {
namespace {

// How the step splits dimension `dim` that is not as an op would by itself: in blocks, or so that
// the last ranks have less.
void AddSplit(const Step& step, const ir::TensorType& type, const ir::Mesh& mesh, int dim,
              ir::AttributeSet& attributes) {
  const auto d = static_cast<size_t>(dim);
  const int64_t block = step.after.axes(dim).empty() ? ir::kNestedChunks : step.after.block(dim);
  if (block != ir::kNestedChunks) {
    attributes.Set("block", block);
  } else if (type.dims[d] % (mesh.size(type.sharding.at(d)) * mesh.size(step.axes)) != 0) {
    attributes.Set("uneven", int64_t{1});
  }
}

std::string ListsOf(const PackedLayout& layout, size_t rank, const ir::Mesh& mesh) {
  std::string lists;
  for (size_t d = 0; d < rank; ++d) {
    absl::StrAppend(&lists, d > 0 ? ";" : "", mesh.Names(layout.axes(static_cast<int>(d))));
  }
  return lists;
}

ir::AttributeSet AttributesOf(const Step& step, const ir::TensorType& type, const ir::Mesh& mesh) {
  ir::AttributeSet attributes = {{"axes", mesh.Names(step.axes)}};
  const auto from = static_cast<int64_t>(step.from), to = static_cast<int64_t>(step.to);
  switch (step.kind) {
    case MoveKind::kAllGather:
      attributes.Set("dim", from);
      break;
    case MoveKind::kSlice:
    case MoveKind::kReduceScatter:
      attributes.Set("dim", to);
      AddSplit(step, type, mesh, step.to, attributes);
      break;
    case MoveKind::kAllToAll:
      attributes.Set("from", from);
      attributes.Set("to", to);
      AddSplit(step, type, mesh, step.to, attributes);
      break;
    case MoveKind::kPermute:
      attributes.Set("to", ListsOf(step.after, type.dims.size(), mesh));
      break;
    case MoveKind::kReblock:
      attributes.Set("dim", from);
      attributes.Set("block", step.after.block(step.from));
      attributes.Set("to", mesh.Names(step.after.axes(step.from)));
      break;
    case MoveKind::kMakePartial:
      attributes.Set("reduction",
                     std::string(ir::ToString(step.after.reduction(step.axes.axes().front()))));
      break;
    default:
      break;
  }
  return attributes;
}

// Whether the axes that split a dimension leave it, or come to it, in an order or in blocks that
// no op has: as tensorcraft's operations on the outer axes.
absl::Status NoOp(const Step& step, const ir::TensorType& type, const ir::Mesh& mesh) {
  return absl::UnimplementedError(absl::StrCat(
      "a step of a redistribution is a ", ToString(step.kind), " to ",
      ir::ToString(
          {.dtype = type.dtype, .dims = type.dims, .sharding = step.after.Unpack(type.dims.size())},
          mesh),
      "; wanted one that an op can carry out"));
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
      return ir::OpKind::kReblock;
    case MoveKind::kMakePartial:
      return ir::OpKind::kMakePartial;
    case MoveKind::kLocalCopy:
      return std::nullopt;
  }
  return std::nullopt;
}

std::optional<MoveKind> StepOf(ir::OpKind op) {
  // Each rank sends its part to one other, in a circle.
  if (op == ir::OpKind::kRotate) return MoveKind::kPermute;
  for (const MoveKind kind :
       {MoveKind::kSlice, MoveKind::kAllGather, MoveKind::kReduceScatter, MoveKind::kAllReduce,
        MoveKind::kAllToAll, MoveKind::kPermute, MoveKind::kReblock}) {
    if (OpOf(kind) == op) return kind;
  }
  return std::nullopt;
}

ir::ValueId EmitStep(const Step& step, ir::ValueId value, absl::string_view name,
                     ir::Builder& builder) {
  const std::optional<ir::OpKind> op = OpOf(step.kind);
  ORRERY_CHECK(op.has_value()) << ToString(step.kind);
  return builder.Op(*op, {value}, name,
                    emit_cc::AttributesOf(step, builder.type(value), builder.function().mesh()));
}

absl::StatusOr<ir::ValueId> Emit(const RedistributionPlan& plan, ir::ValueId value,
                                 absl::string_view name, ir::Builder& builder) {
  const ir::Mesh& mesh = builder.function().mesh();
  for (const PlannedStep& planned : plan.steps) {
    const Step& step = planned.step;
    const ir::TensorType type = builder.type(value);
    if (!OpOf(step.kind).has_value()) return emit_cc::NoOp(step, type, mesh);
    const bool last = &planned == &plan.steps.back();
    value = EmitStep(step, value, last ? name : "", builder);
    if (!builder.status().ok()) return builder.status();
    if (builder.type(value).sharding != step.after.Unpack(type.dims.size())) {
      return emit_cc::NoOp(step, type, mesh);
    }
  }
  return value;
}

}  // namespace orrery::transforms::redistribution
