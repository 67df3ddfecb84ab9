#include "transforms/sharding/sharding_prices.h"

#include "absl/container/inlined_vector.h"
#include "transforms/sharding/op_strategies.h"

namespace orrery::transforms {

double SerialSeconds(const ir::Function& function, ir::OpId op, const ShardingPrices& prices) {
  absl::InlinedVector<const ir::TensorType*, 8> operands, results;
  for (const ir::ValueId operand : function.operands(op)) {
    operands.push_back(&function.type(operand));
  }
  for (int32_t i = 0; i < function.result_count(op); ++i) {
    results.push_back(&function.type(function.result(op, i)));
  }
  return SecondsOf({.kind = function.kind(op),
                    .attributes = function.attributes(op),
                    .operands = operands,
                    .results = results},
                   function.mesh(), prices);
}

double SerialSeconds(const ir::Function& function, const ShardingPrices& prices) {
  double seconds = 0;
  for (const ir::OpId op : function.order()) seconds += SerialSeconds(function, op, prices);
  return seconds;
}

}  // namespace orrery::transforms
