#include "importer/batch/samples_apart.h"

#include <algorithm>

#include "importer/batch/batch_positions.h"
#include "ir/batch.h"
#include "ir/op_info.h"
#include "ir/op_kind.h"
#include "ir/sharding_rule.h"

namespace orrery::importer {
namespace samples_apart_cc {
namespace {

using ir::OpId;
using BatchDims = IdTable<ir::ValueId, int8_t>;

// Whether an operand of `op` may be split along the batch, if it has it.
bool MayBeSplit(const ir::Function& function, OpId op, const BatchDims& dims) {
  if (function.kind(op) == ir::OpKind::kReshape) return true;  // see where the batch goes
  const ir::ShardingRule rule = ir::RuleOf(function, op);
  for (size_t k = 0; k < rule.operands.size(); ++k) {
    const int8_t dim = dims[function.operands(op)[k]];
    if (dim >= 0 && rule.operands[k][static_cast<size_t>(dim)] == ir::kNoFactor) return false;
  }
  return true;
}

}  // namespace
}  // namespace samples_apart_cc

bool SamplesStayApart(const ir::Function& function) {
  const IdTable<ir::ValueId, int8_t> dims = ir::BatchDims(function),
                                     last = ir::LastBatchDims(function);
  const auto has = [&](ir::ValueId value) { return dims[value] >= 0; };
  bool any = false;
  for (const ir::Input& input : function.inputs()) any |= has(input.value);
  for (const ir::OpId op : function.order()) {
    if (std::ranges::none_of(function.operands(op), has)) continue;
    bool stays = ir::ElementCount(function.type(function.result(op)).dims) == 1;
    for (int32_t j = 0; j < function.result_count(op); ++j) {
      const ir::ValueId result = function.result(op, j);
      if (dims[result] != last[result]) return false;
      stays |= has(result);
    }
    if (!stays || !samples_apart_cc::MayBeSplit(function, op, dims)) return false;
  }
  return any;
}

}  // namespace orrery::importer
