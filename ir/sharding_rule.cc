#include "ir/sharding_rule.h"

#include "absl/container/inlined_vector.h"

namespace orrery::ir {

ShardingRule RuleOf(const Function& function, OpId op) {
  const OpInfo& info = function.info(op);
  if (info.sharding == nullptr) return {};
  absl::InlinedVector<const TensorType*, 8> operands;
  for (const ValueId operand : function.operands(op)) operands.push_back(&function.type(operand));
  TypeList results;
  for (int32_t j = 0; j < function.result_count(op); ++j) {
    results.push_back(function.type(function.result(op, j)));
  }
  return info.sharding(
      {.attributes = function.attributes(op), .operands = operands, .mesh = function.mesh()},
      results);
}

}  // namespace orrery::ir
