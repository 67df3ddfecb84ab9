#include "transforms/training/hidden_matrices.h"

#include <algorithm>

#include "ir/op_info.h"
#include "transforms/training/step_phases.h"

namespace orrery::transforms {
namespace hidden_matrices_cc {
namespace {

using ir::Function;
using ir::OpId;
using ir::ValueId;

bool IsProduct(const Function& function, OpId op) {
  return function.info(op).matrix_product && function.info(op).products != nullptr;
}

// Of several values that are made here: behind a residual there is more than one head.
bool Joins(const Function& function, OpId op) {
  const auto operands = function.operands(op);
  return std::ranges::count_if(
             operands, [&](ValueId operand) { return function.producer(operand).valid(); }) > 1;
}

// Of one operand: the same numbers in another form, as a view or a cast.
bool Passes(const Function& function, OpId op) {
  return function.operands(op).size() == 1 && !IsProduct(function, op);
}

// What losses are, or would be, made to be small.
IdTable<ValueId, char> FindEnds(const Function& function) {
  IdTable<ValueId, char> ends(function.value_limit(), 0);
  bool any =
      std::ranges::any_of(function.order(), [&](OpId op) { return function.info(op).is_loss; });
  for (const ir::Output& output : function.outputs()) {
    ends[output.value] = output.role == ir::OutputRole::kLoss ? 1 : 0;
    any = any || ends[output.value] != 0;
  }
  for (const ir::Output& output : function.outputs()) {
    if (any || output.role != ir::OutputRole::kResult) continue;
    any = ir::IsFloat(function.type(output.value).dtype);
    ends[output.value] = any ? 1 : 0;
  }
  return ends;
}

}  // namespace
}  // namespace hidden_matrices_cc

IdTable<ir::OpId, char> FindHeads(const ir::Function& function) {
  IdTable<ir::OpId, char> heads(function.op_limit(), 0);
  IdTable<ir::ValueId, char> to_loss = hidden_matrices_cc::FindEnds(function);
  const auto& order = function.order();
  for (auto op = order.rbegin(); op != order.rend(); ++op) {
    bool leads = function.info(*op).is_loss;
    for (int32_t i = 0; i < function.result_count(*op); ++i) {
      leads = leads || to_loss[function.result(*op, i)] != 0;
    }
    if (!leads) continue;
    if (hidden_matrices_cc::IsProduct(function, *op)) {
      heads[*op] = 1;
      continue;
    }
    if (hidden_matrices_cc::Joins(function, *op)) continue;
    for (const ir::ValueId operand : function.operands(*op)) to_loss[operand] = 1;
  }
  return heads;
}

IdTable<ir::ValueId, char> FindHiddenMatrices(const ir::Function& function) {
  const IdTable<ir::OpId, StepPhase> phase = FindPhases(function);
  const IdTable<ir::OpId, char> heads = FindHeads(function);
  IdTable<ir::ValueId, char> multiplied(function.value_limit(), 0);
  IdTable<ir::ValueId, char> otherwise(function.value_limit(), 0);
  const auto& order = function.order();
  for (auto op = order.rbegin(); op != order.rend(); ++op) {
    if (phase[*op] != StepPhase::kForward) continue;
    const bool product = hidden_matrices_cc::IsProduct(function, *op) && heads[*op] == 0;
    const bool passes = hidden_matrices_cc::Passes(function, *op);
    for (const ir::ValueId operand : function.operands(*op)) {
      bool is_factor = product, is_other = !product && !passes;
      for (int32_t i = 0; passes && i < function.result_count(*op); ++i) {
        is_factor = is_factor || multiplied[function.result(*op, i)] != 0;
        is_other = is_other || otherwise[function.result(*op, i)] != 0;
      }
      if (is_factor) multiplied[operand] = 1;
      if (is_other) otherwise[operand] = 1;
    }
  }
  IdTable<ir::ValueId, char> hidden(function.value_limit(), 0);
  for (const ir::Input& input : function.inputs()) {
    if (input.role != ir::InputRole::kParameter) continue;
    const ir::Dims& dims = function.type(input.value).dims;
    const bool matrix = dims.size() >= 2 && dims.back() > 1 && dims[dims.size() - 2] > 1;
    hidden[input.value] =
        matrix && multiplied[input.value] != 0 && otherwise[input.value] == 0 ? 1 : 0;
  }
  return hidden;
}

}  // namespace orrery::transforms
