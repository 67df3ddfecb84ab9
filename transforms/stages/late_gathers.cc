#include "transforms/stages/late_gathers.h"

#include <algorithm>
#include <limits>

#include "ir/op_kind.h"

namespace orrery::transforms {

void GatherWhereRead(const ir::Function& function, StagePlan& plan) {
  constexpr int32_t kNobody = -1, kUpdate = std::numeric_limits<int32_t>::max();
  IdTable<ir::ValueId, int32_t> reader(function.value_limit(), kNobody);
  for (const ir::Output& output : function.outputs()) reader[output.value] = kUpdate;
  const auto& order = function.order();
  for (auto op = order.rbegin(); op != order.rend(); ++op) {
    const bool gathers = plan.phase[*op] == StepPhase::kBackward &&
                         function.kind(*op) == ir::OpKind::kAllGather &&
                         !plan.runs_on.contains(*op);
    if (gathers) {
      const int32_t last = reader[function.result(*op)];
      if (last != kNobody) plan.stage[*op] = std::min(plan.stage[*op], last);
    }
    // An optimizer is split by parameter.
    const bool updates = plan.phase[*op] == StepPhase::kUpdate;
    for (const ir::ValueId operand : function.operands(*op)) {
      reader[operand] = std::max(reader[operand], updates ? kUpdate : plan.stage[*op]);
    }
  }
}

}  // namespace orrery::transforms
