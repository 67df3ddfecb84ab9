#ifndef ORRERY_TRANSFORMS_SIMPLIFY_BATCH_COST_H_
#define ORRERY_TRANSFORMS_SIMPLIFY_BATCH_COST_H_

#include <cstdint>

#include "ir/function.h"

// What a function pays for values that do not have the batch first.

namespace orrery::transforms {

struct BatchCost {
  /// Elements that views put from having the batch by itself to having it inside of a dimension, as
  /// [time · batch] does, or back: data-parallel ranks gather these.
  int64_t inside = 0;
  /// Elements with the batch that Transposes move.
  int64_t moved = 0;
};

BatchCost BatchCostOf(const ir::Function& function);

/// Whether `after` is to be taken instead of `before`: ranks gather less, or as much and less is
/// moved. What is gathered less must be worth what is moved more.
bool PaysForBatch(const BatchCost& before, const BatchCost& after);

}  // namespace orrery::transforms

#endif  // ORRERY_TRANSFORMS_SIMPLIFY_BATCH_COST_H_
