#include "transforms/slices/slice_rules.h"

#include "ir/op_info.h"
#include "ir/op_kind.h"

namespace orrery::transforms {

using ir::Function;
using ir::OpId;
using ir::OpKind;
using ir::ValueId;

absl::string_view WhyNotCausal(const Function& function, OpId attention) {
  const ir::AttributeSet& attributes = function.attributes(attention);
  const size_t count = function.operands(attention).size();
  const bool gradient = function.kind(attention) == OpKind::kAttentionGrad;
  // What dropout has kept is two operands of the gradient.
  const bool masked = gradient ? count % 2 != 0 : count > 3;
  if (attributes.Find("ring_rows") != nullptr) return "goes round a ring of ranks";
  if (attributes.Int("causal", 0) != 0) return masked ? "has a mask besides being causal" : "";
  return masked ? "has a mask of its own, which may let a position see later ones"
                : "is not causal: a position sees later ones";
}

IdTable<ValueId, char> FindReadBack(const Function& function) {
  IdTable<ValueId, char> found(function.value_limit(), 0);
  for (const OpId op : function.order()) {
    if (function.kind(op) != OpKind::kAttentionGrad) continue;
    for (size_t i = 1; i < 3; ++i) found[function.operands(op)[i]] = 1;
  }
  return found;
}

bool SumsUp(const Function& function, OpId op, StepPhase phase) {
  switch (function.kind(op)) {
    case OpKind::kReduceMean:
    case OpKind::kReduceMax:
    case OpKind::kReduceMin:
    case OpKind::kReduceProd:
    case OpKind::kReduceLogSumExp:
      return false;
    default:
      return function.info(op).is_loss || phase != StepPhase::kForward;
  }
}

}  // namespace orrery::transforms
