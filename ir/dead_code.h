#ifndef ORRERY_IR_DEAD_CODE_H_
#define ORRERY_IR_DEAD_CODE_H_

#include "ir/function.h"

namespace orrery::ir {

/// Whether anything depends on the op: `uses` of a result of it, or it has none and is there for
/// what it does, as a send is.
template <typename T>
bool IsUsed(const Function& function, OpId op, const IdTable<ValueId, T>& uses) {
  bool used = function.result_count(op) == 0;
  for (int32_t i = 0; i < function.result_count(op); ++i) {
    used = used || uses[function.result(op, i)] > 0;
  }
  return used;
}

/// Takes out of the order every op that no output and no send depends on. Returns whether there
/// was one. Inputs stay.
bool RemoveDeadOps(Function& function);

}  // namespace orrery::ir

#endif  // ORRERY_IR_DEAD_CODE_H_
