#include "search/settings/model_flops.h"

#include <map>
#include <vector>

#include "cost_models/cost_model.h"
#include "ir/last_of_kind.h"
#include "ir/op_kind.h"

namespace orrery::search {
namespace model_flops_cc {
namespace {

// Goes over ops and the flops of their products.
template <typename Take>
void ForEachOp(const ir::Function& step, const Take& take) {
  ir::LastOfKind<Flops> known;
  std::vector<const ir::TensorType*> operands, results;
  for (const ir::OpId op : step.order()) {
    if (const Flops* const flops = known.Find(step, op); flops != nullptr) {
      take(op, *flops);
      continue;
    }
    operands.clear();
    results.clear();
    for (const ir::ValueId operand : step.operands(op)) operands.push_back(&step.type(operand));
    for (int32_t i = 0; i < step.result_count(op); ++i) {
      results.push_back(&step.type(step.result(op, i)));
    }
    take(op, known.Put(step, op,
                       cost_models::ModelFlopsOf({.kind = step.kind(op),
                                                  .attributes = step.attributes(op),
                                                  .operands = operands,
                                                  .results = results})));
  }
}

// Of the ops that `counts`.
template <typename Counts>
Flops CountFlops(const ir::Function& step, const Counts& counts) {
  Flops total;
  ForEachOp(step, [&](ir::OpId op, Flops flops) {
    if (counts(step.kind(op))) total += flops;
  });
  return total;
}

}  // namespace
}  // namespace model_flops_cc

Flops CountModelFlops(const ir::Function& step) {
  return model_flops_cc::CountFlops(step, [](ir::OpKind) { return true; });
}

ir::DType ProductType(const ir::Function& step) {
  std::map<ir::DType, double> flops_of;
  model_flops_cc::ForEachOp(step, [&](ir::OpId op, Flops flops) {
    if (flops > Flops()) flops_of[step.type(step.operands(op)[0]).dtype] += flops.count();
  });
  ir::DType most = ir::DType::kF32;
  for (const auto& [dtype, flops] : flops_of) {
    if (flops > flops_of[most]) most = dtype;
  }
  return most;
}

Flops FlopsBeyondSlices(const ir::Function& step, std::span<const transforms::SliceRange> slices) {
  if (slices.empty()) return Flops();
  double met = 0, length = 0;  // queries times keys; positions
  for (const transforms::SliceRange& slice : slices) {
    met += static_cast<double>(slice.rows) * static_cast<double>(slice.begin + slice.rows);
    length += static_cast<double>(slice.rows);
  }
  const Flops attention = model_flops_cc::CountFlops(step, [](ir::OpKind kind) {
    return kind == ir::OpKind::kAttention || kind == ir::OpKind::kAttentionGrad;
  });
  return Flops(attention.count() * (1 - met / (length * length)));
}

}  // namespace orrery::search
