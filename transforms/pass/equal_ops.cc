#include "transforms/pass/equal_ops.h"

#include "ir/op_info.h"
#include "ir/op_kind.h"

namespace orrery::transforms {

bool IsWhatItReads(const ir::Function& function, ir::OpId op) {
  const ir::OpInfo& info = function.info(op);
  if (info.op_class != ir::OpClass::kCompute && info.op_class != ir::OpClass::kView) return false;
  if (info.random || function.result_count(op) == 0) return false;
  return function.kind(op) != ir::OpKind::kConstant || !function.attributes(op).empty();
}

}  // namespace orrery::transforms
