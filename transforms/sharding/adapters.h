#ifndef ORRERY_TRANSFORMS_SHARDING_ADAPTERS_H_
#define ORRERY_TRANSFORMS_SHARDING_ADAPTERS_H_

#include "ir/function.h"
#include "support/id_table.h"

// Low-rank adapters (transforms/training/lora.h) as shardings see them: y = x W + s (x A) B.

namespace orrery::transforms {

/// Where a function has them. A and B are small beside W: how they are split follows from W.
struct Adapters {
  IdTable<ir::ValueId, char> weights;  // A, B
  IdTable<ir::ValueId, char> made;     // x A, s x A, s x A B
  /// Of the op that adds both up, the operand that is made of W; -1 of all others.
  IdTable<ir::OpId, int8_t> base;
};

/// Finds them: of a W that is frozen, and an A and a B that are trained.
Adapters FindAdapters(const ir::Function& function);

}  // namespace orrery::transforms

#endif  // ORRERY_TRANSFORMS_SHARDING_ADAPTERS_H_
