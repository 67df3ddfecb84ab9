#include <algorithm>
#include <vector>

#include "ir/dead_code.h"
#include "ir/op_info.h"
#include "transforms/training/training_step.h"

namespace orrery::transforms {
namespace keep_forward_cc {
namespace {

using ir::Function;
using ir::OpId;
using ir::ValueId;

// What some op of the backward pass has had a part in.
IdTable<ValueId, char> MadeByBackward(const Function& function) {
  IdTable<ValueId, char> made(function.value_limit(), 0);
  for (const OpId op : function.order()) {
    const auto operands = function.operands(op);
    const bool backward = function.info(op).seeds_backward ||
                          std::ranges::any_of(operands, [&](ValueId v) { return made[v] != 0; });
    for (int32_t i = 0; i < function.result_count(op); ++i) made[function.result(op, i)] = backward;
  }
  return made;
}

// What a loss is of: the first operand of its op, or a number that somebody calls a loss itself.
ValueId UnderLoss(const Function& function, ValueId loss) {
  const OpId op = function.producer(loss);
  return op.valid() && function.info(op).is_loss ? function.operands(op)[0] : loss;
}

std::vector<ir::Output> ForwardResults(const Function& function) {
  const IdTable<ValueId, char> backward = MadeByBackward(function);
  std::vector<ir::Output> results;
  for (const ir::Output& output : function.outputs()) {
    const bool loss = output.role == ir::OutputRole::kLoss;
    if (!loss && output.role != ir::OutputRole::kResult) continue;
    const ValueId value = loss ? UnderLoss(function, output.value) : output.value;
    const auto same = [&](const ir::Output& other) { return other.value == value; };
    if (backward[value] != 0 || std::ranges::any_of(results, same)) continue;
    results.push_back({.value = value, .role = ir::OutputRole::kResult, .of = {}});
  }
  return results;
}

// Without the inputs that nothing reads: labels take room, and a share of each microbatch.
Function WithUsedInputs(const Function& from) {
  IdTable<ValueId, char> used(from.value_limit(), 0);
  for (const ir::Output& output : from.outputs()) used[output.value] = 1;
  for (const OpId op : from.order()) {
    for (const ValueId operand : from.operands(op)) used[operand] = 1;
  }
  Function to(from.name(), from.mesh());
  IdTable<ValueId, ValueId> copies(from.value_limit());
  for (const ir::Input& input : from.inputs()) {
    if (used[input.value] == 0) continue;
    copies[input.value] =
        to.AddInput(from.value_name(input.value), from.type(input.value), input.role);
  }
  for (const OpId op : from.order()) {
    std::vector<ValueId> operands;
    for (const ValueId operand : from.operands(op)) operands.push_back(copies[operand]);
    std::vector<ir::TensorType> types;
    std::vector<absl::string_view> names;
    for (int32_t i = 0; i < from.result_count(op); ++i) {
      types.push_back(from.type(from.result(op, i)));
      names.push_back(from.value_name(from.result(op, i)));
    }
    const OpId copy =
        to.AddOp(from.kind(op), operands, to.InternAttributes(from.attributes(op)), types, names);
    for (int32_t i = 0; i < from.result_count(op); ++i) {
      copies[from.result(op, i)] = to.result(copy, i);
    }
  }
  for (ir::Output output : from.outputs()) {
    output.value = copies[output.value];
    to.AddOutput(output);
  }
  return to;
}

}  // namespace
}  // namespace keep_forward_cc

bool KeepForward(ir::Function& function) {
  if (!IsTrained(function)) return false;
  function.SetOutputs(keep_forward_cc::ForwardResults(function));
  ir::RemoveDeadOps(function);
  function = keep_forward_cc::WithUsedInputs(function);
  return true;
}

}  // namespace orrery::transforms
