#include "ir/dead_code.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "ir/op_info.h"

namespace orrery::ir {

bool RemoveDeadOps(Function& function) {
  IdTable<ValueId, char> wanted(function.value_limit(), 0);
  for (const Output& output : function.outputs()) wanted[output.value] = 1;
  std::vector<OpId> alive;
  const auto& order = function.order();
  for (auto op = order.rbegin(); op != order.rend(); ++op) {
    if (!IsUsed(function, *op, wanted)) continue;
    alive.push_back(*op);
    for (const ValueId operand : function.operands(*op)) wanted[operand] = 1;
  }
  if (alive.size() == order.size()) return false;
  std::reverse(alive.begin(), alive.end());
  function.SetOrder(std::move(alive));
  return true;
}

}  // namespace orrery::ir
