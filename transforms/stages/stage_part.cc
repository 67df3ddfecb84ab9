#include "transforms/stages/stage_part.h"

#include "absl/strings/str_cat.h"
#include "ir/op_kind.h"
#include "support/status.h"

namespace orrery::transforms {

using ir::Function;
using ir::OpId;
using ir::OpKind;
using ir::ValueId;

StagePart::StagePart(const std::string& name, const ir::Mesh& mesh, const Function& step,
                     int32_t number, LocalValues& locals)
    : step_(step),
      builder_(name, mesh),
      number_(number),
      locals_(locals),
      types_of_step_(step.types().size()) {
  builder_.function().KeepNamesOf(step);
}

void StagePart::Bind(ValueId origin, ValueId here) {
  locals_.Bind(origin, number_, here);
  pairs_.emplace_back(origin, here);
}

// Name of a value that crosses from one function to another: its own, or a new one.
std::string StagePart::NameOf(ValueId origin) const {
  const absl::string_view name = step_.value_name(origin);
  return name.empty() ? absl::StrCat("v", origin.index()) : std::string(name);
}

// A type of the step, in the table of this part.
ir::TypeId StagePart::TypeIn(ir::TypeId type) {
  ir::TypeId& here = types_of_step_[type];
  if (!here.valid()) here = builder_.function().InternType(step_.types()[type]);
  return here;
}

ValueId StagePart::AddInput(ValueId origin, ir::InputRole role) {
  Function& target = builder_.function();
  const ValueId here = target.AddInputOfType("", TypeIn(step_.type_id(origin)), role);
  const absl::string_view name = step_.value_name(origin);
  if (!name.empty()) {
    target.SetKeptName(here, name);
  } else if (role == ir::InputRole::kSaved) {
    target.SetName(here, NameOf(origin));
  }
  Bind(origin, here);
  return here;
}

ValueId StagePart::AddSum(ValueId origin) {
  Bind(origin, builder_.AddInput(absl::StrCat(NameOf(origin), ".sum"), step_.type(origin),
                                 ir::InputRole::kAccumulator));
  return local(origin);
}

ValueId StagePart::AddReceive(ValueId origin, int32_t from) {
  const std::string name = NameOf(origin);
  const OpId op = builder_.TypedOp(OpKind::kReceive, {}, step_.type(origin), name,
                                   {{"from", int64_t{from}}, {"tag", name}});
  Bind(origin, op.valid() ? builder_.function().result(op) : ValueId());
  return local(origin);
}

void StagePart::AddSend(ValueId origin, int32_t to) {
  const ValueId here = local(origin);
  builder_.Ops(OpKind::kSend, std::span(&here, 1), {},
               {{"tag", NameOf(origin)}, {"to", int64_t{to}}});
}

void StagePart::Save(ValueId origin) {
  if (!locals_.Save(origin, number_)) return;
  const ValueId here = local(origin);
  builder_.Return(here, ir::OutputRole::kSaved);
  if (builder_.function().value_name(here).empty()) {
    builder_.function().SetName(here, NameOf(origin));
  }
}

void StagePart::Append(OpId op, std::span<const ValueId> operands) {
  results_.clear();
  for (int32_t i = 0; i < step_.result_count(op); ++i) results_.push_back(step_.result(op, i));
  Append({.kind = step_.kind(op), .operands = operands, .results = results_}, step_.attributes(op));
}

void StagePart::Append(const PartOfOp& op, const ir::AttributeSet& attributes) {
  types_.clear();
  for (const ValueId result : op.results) types_.push_back(TypeIn(step_.type_id(result)));
  Function& target = builder_.function();
  const OpId copy =
      target.AddOpOfTypes(op.kind, op.operands, target.InternAttributes(attributes), types_);
  for (size_t i = 0; i < op.results.size(); ++i) {
    const ValueId here = target.result(copy, static_cast<int32_t>(i));
    target.SetKeptName(here, step_.value_name(op.results[i]));
    Bind(op.results[i], here);
  }
}

void StagePart::AddUp(int64_t microbatches) {
  for (const ValueId origin : collected_) AddUp(origin, OpKind::kCollect, microbatches);
  for (const ValueId origin : summed_) AddUp(origin, OpKind::kAccumulate, 1);
  collected_.clear();
  summed_.clear();
}

void StagePart::AddUp(ValueId origin, OpKind kind, int64_t parts) {
  ir::TensorType type = step_.type(origin);
  const bool collects = kind == OpKind::kCollect;
  if (collects) type.dims[static_cast<size_t>(collect_dim_)] *= parts;
  const std::string name = absl::StrCat(NameOf(origin), collects ? ".all" : ".sum");
  const ValueId so_far = builder_.AddInput(name, type, ir::InputRole::kAccumulator);
  ir::AttributeSet attributes;
  if (collects && collect_dim_ != 0) attributes.Set("dim", int64_t{collect_dim_});
  const ValueId sum =
      builder_.Op(kind, {so_far, local(origin)}, absl::StrCat(name, "'"), attributes);
  builder_.Return(sum, ir::OutputRole::kAccumulator, so_far);
}

absl::StatusOr<StageFunction> StagePart::Finish(int64_t microbatches) && {
  AddUp(microbatches);
  for (const auto& [origin, to] : sends_) AddSend(origin, to);
  StageFunction stage;
  ORRERY_ASSIGN_OR_RETURN(stage.function, std::move(builder_).Finalize());
  stage.origins.resize(static_cast<size_t>(stage.function.value_limit()));
  for (const auto& [origin, here] : pairs_) {
    stage.origins[static_cast<size_t>(here.index())] = origin;
  }
  return stage;
}

}  // namespace orrery::transforms
