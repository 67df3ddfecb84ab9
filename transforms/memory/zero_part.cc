#include "transforms/memory/zero_part.h"

#include <utility>

#include "ir/op_kind.h"

namespace orrery::transforms {

using ir::AxisIndex;
using ir::AxisList;
using ir::OpId;
using ir::OpKind;
using ir::ValueId;

PartCopy::PartCopy(const StageFunction& from)
    : from_(from),
      builder_(from.function.name(), from.function.mesh()),
      values_(from.function.value_limit()),
      types_(from.function.types().size()) {
  builder_.function().KeepNamesOf(from.function);
  builder_.function().Reserve(from.function.op_limit(), from.function.value_limit());
}

ir::TypeId PartCopy::TypeIn(ir::TypeId type) {
  ir::TypeId& here = types_[type];
  if (!here.valid()) here = builder_.function().InternType(from().types()[type]);
  return here;
}

void PartCopy::Bind(ValueId here, ValueId origin) {
  const auto row = static_cast<size_t>(here.index());
  if (origins_.size() <= row) origins_.resize(row + 1);
  origins_[row] = origin;
}

void PartCopy::TakeName(ValueId old, ValueId here) {
  builder_.function().SetKeptName(here, from().value_name(old));
}

void PartCopy::AddInput(const ir::Input& input, const ir::TensorType& type) {
  values_[input.value] = builder_.function().AddInput("", type, input.role);
  TakeName(input.value, values_[input.value]);
  Bind(values_[input.value], OriginOf(input.value));
}

void PartCopy::AddInput(const ir::Input& input) {
  values_[input.value] =
      builder_.function().AddInputOfType("", TypeIn(from().type_id(input.value)), input.role);
  TakeName(input.value, values_[input.value]);
  Bind(values_[input.value], OriginOf(input.value));
}

void PartCopy::CopyOp(OpId op) {
  operands_.clear();
  result_types_.clear();
  for (const ValueId operand : from().operands(op)) operands_.push_back(values_[operand]);
  for (int32_t i = 0; i < from().result_count(op); ++i) {
    result_types_.push_back(TypeIn(from().type_id(from().result(op, i))));
  }
  ir::Function& to = builder_.function();
  const OpId copy = to.AddOpOfTypes(from().kind(op), operands_,
                                    to.InternAttributes(from().attributes(op)), result_types_);
  for (int32_t i = 0; i < from().result_count(op); ++i) {
    const ValueId old = from().result(op, i), here = to.result(copy, i);
    values_[old] = here;
    TakeName(old, here);
    Bind(here, OriginOf(old));
  }
}

void PartCopy::CopyOutputs() {
  for (const ir::Output& output : from().outputs()) {
    builder_.Return(values_[output.value], output.role,
                    output.of.valid() ? values_[output.of] : ValueId());
  }
}

ValueId PartCopy::Scatter(ValueId value, const Shard& shard, const ir::AttributeSet& attributes,
                          const std::string& name) {
  const auto axes = shard.axes.axes();
  for (size_t begin = 0; begin < axes.size() && status().ok();) {
    const ir::Sharding& sharding = builder_.function().type(value).sharding;
    const bool reduces = sharding.partial.contains(axes[begin]);
    AxisList run;
    size_t end = begin;
    while (end < axes.size() && sharding.partial.contains(axes[end]) == reduces) {
      run.push_back(axes[end++]);
    }
    ir::AttributeSet all = attributes;
    all.Set("axes", builder_.function().mesh().Names(run));
    all.Set("dim", static_cast<int64_t>(shard.dim));
    if (shard.uneven) all.Set("uneven", int64_t{1});
    const std::string here = end < axes.size() || name.empty() ? "" : builder_.FreeName(name);
    value = builder_.Op(reduces ? OpKind::kReduceScatter : OpKind::kAllSlice, {value}, here, all);
    begin = end;
  }
  return value;
}

ValueId PartCopy::Gather(ValueId value, const Shard& shard, int32_t unit, const std::string& name) {
  return builder_.Op(OpKind::kAllGather, {value}, name.empty() ? "" : builder_.FreeName(name),
                     {{"axes", builder_.function().mesh().Names(shard.axes)},
                      {"dim", static_cast<int64_t>(shard.dim)},
                      {"unit", int64_t{unit}}});
}

absl::StatusOr<StageFunction> PartCopy::Finish() && {
  StageFunction part;
  absl::StatusOr<ir::Function> function = std::move(builder_).Finalize();
  if (!function.ok()) return function.status();
  part.function = *std::move(function);
  origins_.resize(static_cast<size_t>(part.function.value_limit()));
  part.origins = std::move(origins_);
  return part;
}

}  // namespace orrery::transforms
