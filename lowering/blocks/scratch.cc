#include "lowering/blocks/scratch.h"

#include "ir/op_info.h"
#include "ir/op_kind.h"
#include "ir/optimizer_operands.h"

namespace orrery::lowering {
namespace scratch_cc {
namespace {

using ir::OpKind;

double Elements(const ir::TensorType& type) {
  return static_cast<double>(ir::ElementCount(type.dims));
}

// A logit, while the op runs; 0 where it reads none.
double OfALogit(OpKind kind, const StackMemory& memory) {
  switch (kind) {
    case OpKind::kCrossEntropy:
    case OpKind::kCrossEntropyGrad:
      return memory.loss;
    case OpKind::kCrossEntropyParts:
    case OpKind::kCrossEntropyPartsGrad:
      return memory.split_loss;
    default:
      return 0;
  }
}

}  // namespace
}  // namespace scratch_cc

double ScratchBytes(ir::OpId op, const ir::Function& function,
                    const IdTable<ir::TypeId, ir::TensorType>& local, const StackMemory& memory) {
  const auto operands = function.operands(op);
  const auto type = [&](size_t i) { return local[function.type_id(operands[i])]; };
  const double of_a_logit = scratch_cc::OfALogit(function.kind(op), memory);
  if (of_a_logit > 0) return of_a_logit * scratch_cc::Elements(type(0));
  const bool updates = function.info(op).op_class == ir::OpClass::kOptimizer;
  if (memory.update <= 0 || !updates) return 0;
  const size_t parameters = ir::ParameterCount(function.attributes(op));
  double elements = 0;
  // The state is of what the rank updates; where there is none the parameters are.
  for (size_t i = 0; i < parameters; ++i) elements += scratch_cc::Elements(type(i));
  return memory.update * elements;
}

}  // namespace orrery::lowering
