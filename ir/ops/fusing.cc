#include "ir/ops/fusing.h"

#include "ir/op_info.h"
#include "ir/op_kind.h"

namespace orrery::ir {

Fusing FusingOf(OpKind kind) {
  switch (kind) {
    case OpKind::kDropout:
    case OpKind::kRotary:
    case OpKind::kTranspose:
    case OpKind::kConcat:
    case OpKind::kPad:
    case OpKind::kPadGrad:
    case OpKind::kSliceGrad:
    case OpKind::kTrilu:
      return Fusing::kElements;
    case OpKind::kReduceSum:
    case OpKind::kReduceMean:
    case OpKind::kReduceMax:
    case OpKind::kReduceMin:
    case OpKind::kReduceProd:
      return Fusing::kRows;
    default: {
      const OpInfo& info = GetOpInfo(kind);
      const bool elements = info.op_class == OpClass::kCompute &&
                            info.sharding == ElementwiseRule && !info.is_loss &&
                            !info.seeds_backward;
      return elements ? Fusing::kElements : Fusing::kNever;
    }
  }
}

}  // namespace orrery::ir
