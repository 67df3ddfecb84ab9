#include "lowering/blocks/kernel_costs.h"

#include "cost_models/fused_attention.h"
#include "ir/op_info.h"
#include "ir/op_kind.h"

namespace orrery::lowering {

using ir::OpId;
using ir::ValueId;

simulator::KernelShares KernelsOf(const ir::Function& function, OpId op, simulator::TaskKind kind) {
  using simulator::KernelKind;
  simulator::KernelShares shares = {};
  if (kind != simulator::TaskKind::kCompute) return shares;
  const ir::OpInfo& info = function.info(op);
  const bool attention = function.kind(op) == ir::OpKind::kAttention ||
                         function.kind(op) == ir::OpKind::kAttentionGrad;
  const KernelKind of = attention                                  ? KernelKind::kAttention
                        : info.op_class == ir::OpClass::kOptimizer ? KernelKind::kUpdate
                        : info.matrix_product                      ? KernelKind::kProduct
                                                                   : KernelKind::kOther;
  shares[static_cast<size_t>(of)] = 1;
  return shares;
}

LocalTypes::LocalTypes(const ir::Function& function)
    : function_(function), types_(function.types().size()), bytes_(function.types().size()) {
  for (int32_t t = 0; t < function.types().size(); ++t) {
    const ir::TypeId id(t);
    types_[id] = ir::LocalType(function.types()[id], function.mesh());
    bytes_[id] = ir::SizeOf(types_[id]).count();
  }
}

KernelCosts::Cost KernelCosts::Of(OpId op) {
  const Cost* const known = known_.Find(function_, op);
  if (known != nullptr) return *known;
  const cost_models::OpView view = View(op);
  const bool waits =
      function_.kind(op) == ir::OpKind::kDispatch && context_.phase == simulator::Phase::kForward;
  const Duration wait = waits ? context_.kernels.experts : Duration(0);
  return known_.Put(function_, op,
                    {.duration = context_.cost_model.Compute(view, *context_.device) + wait,
                     .flops = cost_models::FlopsOf(view),
                     .bytes = cost_models::BytesMovedBy(view),
                     .launches = static_cast<double>(cost_models::LaunchesOf(view)),
                     .sources = context_.cost_model.SourcesOf(view, *context_.device)});
}

cost_models::OpView KernelCosts::View(OpId op) {
  operands_.clear();
  results_.clear();
  for (const ValueId operand : function_.operands(op)) operands_.push_back(&local_.Of(operand));
  for (int32_t i = 0; i < function_.result_count(op); ++i) {
    results_.push_back(&local_.Of(function_.result(op, i)));
  }
  const auto operands = function_.operands(op);
  return {.kind = function_.kind(op),
          .attributes = function_.attributes(op),
          .operands = operands_,
          .results = results_,
          .first_operand = operands.empty() ? nullptr : &function_.type(operands[0]),
          .choice = &context_.kernels.choice};
}

}  // namespace orrery::lowering
