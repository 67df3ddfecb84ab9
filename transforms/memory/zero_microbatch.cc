#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "ir/op_kind.h"
#include "transforms/memory/zero_part.h"

namespace orrery::transforms {
namespace zero_microbatch_cc {
namespace {

using ir::OpId;
using ir::OpKind;
using ir::ValueId;

// Gathers parameters before they are used, and scatters gradients after they are made.
class MicrobatchSharder {
 public:
  MicrobatchSharder(const StageFunction& part, const ZeroPlan& plan)
      : plan_(plan),
        copy_(part),
        sum_of_(copy_.from().value_limit()),
        gathered_(copy_.from().value_limit()),
        scattered_(copy_.from().value_limit()) {}

  absl::StatusOr<StageFunction> Run() {
    const ir::Function& from = copy_.from();
    for (const OpId op : from.order()) {
      if (from.kind(op) == OpKind::kAccumulate) {
        sum_of_[from.operands(op)[0]] = from.operands(op)[1];
      }
    }
    for (const ir::Input& input : from.inputs()) AddInput(input);
    for (const OpId op : from.order()) {
      if (copy_.status().ok()) CopyOp(op);
    }
    for (const ir::Output& output : from.outputs()) {
      if (scattered_[output.value].valid()) copy_[output.value] = scattered_[output.value];
    }
    copy_.CopyOutputs();
    return std::move(copy_).Finish();
  }

 private:
  const Shard* GradientShard(ValueId value) const {
    if (!value.valid() || !copy_.from().producer(value).valid()) return nullptr;
    return ZeroPlan::Find(plan_.gradients, copy_.OriginOf(value));
  }

  const Shard* ParameterShard(const ir::Input& input) const {
    if (!plan_.gathers || !ir::IsWeight(input.role)) return nullptr;
    return ZeroPlan::Find(plan_.parameters, copy_.OriginOf(input.value));
  }

  void AddInput(const ir::Input& input) {
    const ir::TensorType& type = copy_.from().type(input.value);
    const Shard* const parameter = ParameterShard(input);
    const Shard* const sum = GradientShard(sum_of_[input.value]);
    if (parameter != nullptr) {
      gathered_[input.value] = parameter;
      copy_.AddInput(input, parameter->Of(type));
    } else if (sum != nullptr) {
      copy_.AddInput(input, sum->Of(type));
    } else {
      copy_.AddInput(input);
    }
  }

  void CopyOp(OpId op) {
    const ir::Function& from = copy_.from();
    const auto operands = from.operands(op);
    for (const ValueId operand : operands) GatherBeforeUse(operand);
    if (from.kind(op) == OpKind::kAccumulate && scattered_[operands[1]].valid()) {
      const ValueId result = from.result(op);
      copy_[result] =
          copy_.builder().Op(OpKind::kAccumulate, {copy_[operands[0]], scattered_[operands[1]]},
                             from.value_name(result));
      return;
    }
    copy_.CopyOp(op);
    for (int32_t i = 0; i < from.result_count(op); ++i) ScatterGradient(from.result(op, i));
  }

  void GatherBeforeUse(ValueId operand) {
    const Shard* const shard = std::exchange(gathered_[operand], nullptr);
    if (shard == nullptr) return;
    copy_[operand] = copy_.Gather(copy_[operand], *shard, shard->unit, Name(operand, ".whole"));
  }

  void ScatterGradient(ValueId value) {
    const Shard* const shard = GradientShard(value);
    if (shard == nullptr) return;
    scattered_[value] = copy_.Scatter(copy_[value], *shard, {{"unit", int64_t{shard->unit}}},
                                      Name(value, ".shard"));
    if (!scattered_[value].valid()) return;
    copy_.DropOrigin(value);
    copy_.TakeOrigin(value, scattered_[value]);
  }

  std::string Name(ValueId value, absl::string_view suffix) const {
    const absl::string_view name = copy_.from().value_name(value);
    return name.empty() ? "" : absl::StrCat(name, suffix);
  }

  const ZeroPlan& plan_;
  PartCopy copy_;
  IdTable<ValueId, ValueId> sum_of_;         // of an accumulator: what is added to it
  IdTable<ValueId, const Shard*> gathered_;  // of parameters that are yet to be gathered
  IdTable<ValueId, ValueId> scattered_;      // of gradients: here
};

}  // namespace
}  // namespace zero_microbatch_cc

absl::StatusOr<StageFunction> ShardMicrobatchPart(const StageFunction& part, const ZeroPlan& plan) {
  return zero_microbatch_cc::MicrobatchSharder(part, plan).Run();
}

}  // namespace orrery::transforms
