#include "transforms/dead_code.h"

#include <algorithm>

#include "transforms/pass.h"

namespace orrery::transforms {

bool RemoveDeadOps(ir::Function& function) {
  IdTable<ir::ValueId, char> wanted(function.value_limit(), 0);
  for (const ir::Output& output : function.outputs()) wanted[output.value] = 1;
  std::vector<ir::OpId> alive;
  const auto& order = function.order();
  for (auto op = order.rbegin(); op != order.rend(); ++op) {
    bool keep = function.info(*op).op_class == ir::OpClass::kSend;
    for (int32_t i = 0; i < function.result_count(*op); ++i) {
      keep = keep || wanted[function.result(*op, i)] != 0;
    }
    if (!keep) continue;
    alive.push_back(*op);
    for (const ir::ValueId operand : function.operands(*op)) wanted[operand] = 1;
  }
  if (alive.size() == order.size()) return false;
  std::reverse(alive.begin(), alive.end());
  function.SetOrder(std::move(alive));
  return true;
}

extern const PassInfo kDeadCodePass = {
    .name = "dead-code",
    .summary = "removes ops whose results nothing uses",
    .options = "",
    .run = [](ir::Function& function, const PassOptions&) -> absl::StatusOr<bool> {
      return RemoveDeadOps(function);
    },
    .idempotent = true,
};

}  // namespace orrery::transforms
