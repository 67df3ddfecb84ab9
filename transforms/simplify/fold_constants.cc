#include "ir/op_info.h"
#include "ir/op_kind.h"
#include "transforms/pass/pass.h"
#include "transforms/pass/rewriter.h"

// Ops whose operands are all constants become constants.

namespace orrery::transforms {
namespace fold_constants_cc {
namespace {

using ir::OpClass;
using ir::OpId;
using ir::OpKind;
using ir::Tensor;

// As much as the importer folds; larger tensors are cheaper to compute than to write down.
constexpr int64_t kMaxElements = 4096;

bool MayFold(const Rewriter& r, OpId op) {
  const ir::OpInfo& info = r.function().info(op);
  const bool computes = info.op_class == OpClass::kCompute || info.op_class == OpClass::kView;
  // What follows the batch has no one value.
  if (r.attributes(op).Find("batch_dim") != nullptr) return false;
  if (!computes || info.random || info.evaluate == nullptr || r.kind(op) == OpKind::kConstant)
    return false;
  for (int32_t i = 0; i < r.function().result_count(op); ++i) {
    if (ir::ElementCount(r.dims(r.result(op, i))) > kMaxElements) return false;
  }
  return r.operand_count(op) > 0;
}

void Fold(Rewriter& r, OpId op) {
  if (!MayFold(r, op)) return;
  std::vector<Tensor> operands;
  for (const ir::ValueId value : r.function().operands(op)) {
    std::optional<Tensor> tensor = r.Known(value, kMaxElements);
    if (!tensor.has_value()) return;
    operands.push_back(*std::move(tensor));
  }
  std::vector<const Tensor*> pointers;
  for (const Tensor& tensor : operands) pointers.push_back(&tensor);
  std::vector<ir::TensorType> types;
  const int32_t count = r.function().result_count(op);
  for (int32_t i = 0; i < count; ++i) types.push_back(r.type(r.result(op, i)));
  const auto results = ir::Evaluate(r.kind(op), r.attributes(op), pointers, types);
  if (!results.ok()) return;
  for (int32_t i = 0; i < count; ++i) {
    if (r.uses(r.result(op, i)) == 0) continue;
    r.Replace(r.result(op, i), r.Constant((*results)[static_cast<size_t>(i)]));
  }
}

}  // namespace
}  // namespace fold_constants_cc

extern const PassInfo kFoldConstantsPass = {
    .name = "fold-constants",
    .summary = "computes ops on constants of at most 4096 elements",
    .options = "",
    .run = [](ir::Function& function,
              const PassOptions&) { return Rewrite(function, fold_constants_cc::Fold); },
    .idempotent = true,
};

}  // namespace orrery::transforms
