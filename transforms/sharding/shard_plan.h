#ifndef ORRERY_TRANSFORMS_SHARDING_SHARD_PLAN_H_
#define ORRERY_TRANSFORMS_SHARDING_SHARD_PLAN_H_

#include "absl/status/statusor.h"
#include "ir/function.h"

namespace orrery::transforms {

/// What axis "hp" does to each value.
struct TensorSplits {
  IdTable<ir::ValueId, int8_t> dims;   // the dimension that it splits; -1: none
  IdTable<ir::ValueId, char> partial;  // whether an op leaves it a sum over the axis
};

/// Megatron's pattern, decided in one walk over the ops of a function that is not sharded over "hp"
/// yet. Only the entries of inputs are binding: the rest follows from them. A product of which a
/// dimension does not divide into `parts` stays whole; infeasible (kDivisibility) when nothing at
/// all can be split.
absl::StatusOr<TensorSplits> PlanTensorSplits(const ir::Function& function, int64_t parts);

}  // namespace orrery::transforms

#endif  // ORRERY_TRANSFORMS_SHARDING_SHARD_PLAN_H_
