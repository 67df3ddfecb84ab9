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

bool ReadsLogits(OpKind kind) {
  return kind == OpKind::kCrossEntropy || kind == OpKind::kCrossEntropyGrad ||
         kind == OpKind::kCrossEntropyParts || kind == OpKind::kCrossEntropyPartsGrad;
}

}  // namespace
}  // namespace scratch_cc

double ScratchBytes(ir::OpId op, const ir::Function& function,
                    const IdTable<ir::TypeId, ir::TensorType>& local, const StackMemory& memory) {
  const auto operands = function.operands(op);
  const auto type = [&](size_t i) { return local[function.type_id(operands[i])]; };
  if (memory.loss > 0 && scratch_cc::ReadsLogits(function.kind(op)))
    return memory.loss * scratch_cc::Elements(type(0));
  const bool updates = function.info(op).op_class == ir::OpClass::kOptimizer;
  if (memory.update <= 0 || !updates) return 0;
  const size_t parameters = ir::ParameterCount(function.attributes(op));
  double elements = 0;
  // The state is of what the rank updates; where there is none the parameters are.
  for (size_t i = 0; i < parameters; ++i) elements += scratch_cc::Elements(type(i));
  return memory.update * elements;
}

}  // namespace orrery::lowering
