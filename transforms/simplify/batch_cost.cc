#include "transforms/simplify/batch_cost.h"

#include "ir/batch.h"
#include "ir/op_kind.h"
#include "transforms/simplify/match.h"

namespace orrery::transforms {
namespace batch_cost_cc {
namespace {

// A gather takes as long as many moves, as links are slower than memory: 3.35 TB/s beside 450 GB/s
// in an H100's node, 50 GB/s between nodes. A move reads and writes.
constexpr int64_t kMovesOfAGather = 4;

}  // namespace
}  // namespace batch_cost_cc

BatchCost BatchCostOf(const ir::Function& function) {
  const IdTable<ir::ValueId, int8_t> dims = ir::BatchDims(function);
  const IdTable<ir::ValueId, int64_t> outside = ir::OutsideOfBatch(function, dims);
  BatchCost cost;
  for (const ir::OpId op : function.order()) {
    const bool transposes = function.kind(op) == ir::OpKind::kTranspose;
    if (!transposes && !IsView(function.kind(op))) continue;
    const ir::ValueId x = function.operands(op)[0], y = function.result(op);
    if (dims[x] < 0) continue;
    const int64_t elements = ir::ElementCount(function.type(y).dims);
    if (transposes) cost.moved += elements;
    if (!transposes && (outside[x] > 1) != (outside[y] > 1)) cost.inside += elements;
  }
  return cost;
}

bool PaysForBatch(const BatchCost& before, const BatchCost& after) {
  if (after.inside == before.inside) return after.moved < before.moved;
  const int64_t less = before.inside - after.inside;
  return less > 0 && after.moved <= before.moved + batch_cost_cc::kMovesOfAGather * less;
}

}  // namespace orrery::transforms
